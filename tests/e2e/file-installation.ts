/**
 * The installation of a test file. Starting costs seconds, so one is shared: a run that has started one names its home in
 * SANDGLASS_TEST_HOME. A file that needs its own (it restarts it, or breaks it), or that runs alone, starts one and takes it down afterwards.
 */
import { after } from 'node:test'
import { commandEnvironment, Installation, startInstallation } from './installation.ts'

type Cleanup = () => unknown

const cleanups: Cleanup[] = []
const stops: Cleanup[] = []
/** Runs after the tests of this file, last registered first, while its installation is still there. node:test's own hooks would run in the order of their registration. */
export const afterTests = (cleanup: Cleanup): void => void cleanups.push(cleanup)
after(async () => {
  for (const cleanup of [...cleanups.reverse(), ...stops]) await cleanup()
})

let shared: Promise<Installation> | undefined
let own: Promise<Installation> | undefined

async function startForThisFile(env: Readonly<Record<string, string>> = {}): Promise<Installation> {
  const { installation, stop } = await startInstallation(env)
  stops.push(stop)
  return installation
}

/** The installation that the run shares, or one for this file, taken down after its tests. */
export function sharedInstallation(): Promise<Installation> {
  const home = process.env['SANDGLASS_TEST_HOME']
  shared ??= home === undefined || home === '' ? ownInstallation() : Promise.resolve(new Installation(home, { ...commandEnvironment(), SANDGLASS_HOME: home }))
  return shared
}

/** An installation for this file alone, taken down after its tests. */
export function ownInstallation(env: () => Readonly<Record<string, string>> = () => ({})): Promise<Installation> {
  own ??= startForThisFile(env())
  return own
}
