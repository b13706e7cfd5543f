/** Directories of a runtime, on the simulated machine. */

import { basename } from 'node:path'
import type { RuntimePaths } from '@sandglass/host-agent/state/layout'
import { presentMachine } from '../host/machine.ts'

export async function makeDirectories(paths: RuntimePaths): Promise<void> {
  const machine = presentMachine()
  await machine.step('makes directories', () => void machine.directories.add(basename(paths.dir)))
}

export async function removeDirectories(paths: RuntimePaths): Promise<void> {
  const machine = presentMachine()
  await machine.step('removes directories', () => void machine.directories.delete(basename(paths.dir)))
}
