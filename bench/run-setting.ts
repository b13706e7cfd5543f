/** Measures the families of one setting on an installation of its own, and takes it down. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sandglass/testkit'
import { startInstallation } from '../tests/e2e/installation.ts'
import type { Bench, Family } from './bench.ts'
import { Freshness } from './installation/freshness.ts'
import { fullPool, METRICS_PORT } from './installation/pool.ts'
import { environmentOf, MEMBERS, type Setting } from './installation/settings.ts'
import { inFlight } from './measure/interleave.ts'
import { machineAtRest } from './measure/machine.ts'
import type { Samples } from './measure/samples.ts'
import type { Finding } from './report/finding.ts'

/** A row that takes longer has something wrong with it, and would keep the others from being measured. */
const FAMILY_MS = 240_000
const DELETES_IN_FLIGHT = 8

export type SettingRun = {
  readonly setting: Setting
  readonly families: readonly Family[]
  readonly samples: Samples
  readonly signal: AbortSignal
  readonly count: (wanted: number) => number
  /** A look at whether it works waits for no quiet, and claims none. */
  readonly isLook: boolean
  readonly note: (id: string, text: string) => void
  /** Called for every family before it begins and with what it found. */
  readonly progress: (text: string) => void
}

/** What a family left behind that failed: the next one wants a host to itself. */
async function clear({ installation }: Pick<Bench, 'installation'>): Promise<void> {
  const left = await installation.sandboxes()
  await inFlight(
    DELETES_IN_FLIGHT,
    left.map((sandbox) => () => sandbox.delete()),
  )
}

async function measured(shared: Omit<Bench, 'atRest'>, family: Family, run: SettingRun): Promise<Finding[]> {
  const ids = family.ids.join(', ')
  run.progress(`measuring ${ids} (${run.setting})`)
  const late = AbortSignal.timeout(FAMILY_MS)
  const signal = AbortSignal.any([run.signal, late])
  const atRest = (): Promise<void> => (run.isLook ? Promise.resolve() : machineAtRest(signal))
  const bench = { ...shared, signal, atRest }
  try {
    await fullPool(bench.installation, MEMBERS[run.setting], signal)
    await atRest()
    return await family.measure(bench)
  } catch (error) {
    run.signal.throwIfAborted()
    const why = late.aborted ? `not measured within ${FAMILY_MS} ms` : error instanceof Error ? (error.stack ?? error.message) : String(error)
    run.note(ids, `failed: ${why}`)
    await clear(bench).catch((cause: unknown) => run.note(ids, `what it left stays: ${cause instanceof Error ? cause.message : String(cause)}`))
    return []
  }
}

export async function runSetting(run: SettingRun): Promise<Finding[]> {
  run.progress(`starting an installation (${run.setting})`)
  const owned = await startInstallation({ ...environmentOf(run.setting), [METRICS_PORT]: String(await freePort()) })
  const scratch = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const { installation } = owned
  const { samples, signal, count, note } = run
  const bench = { installation, client: installation.client(), samples, freshness: new Freshness(), scratch, signal, count, note }
  const findings: Finding[] = []
  try {
    for (const family of run.families) findings.push(...(await measured(bench, family, run)))
  } finally {
    // What was measured is told also when the end of the installation fails.
    await owned
      .stop()
      .catch((error: unknown) => run.note(run.setting, `the installation did not go away: ${error instanceof Error ? error.message : String(error)}`))
    rmSync(scratch, { recursive: true, force: true })
  }
  return findings
}
