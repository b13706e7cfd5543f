/** The simulated machine's disk: a write is whole or was never, and what was answered survives everything but the loss of the disk. */
import { basename, dirname } from 'node:path'
import { presentMachine } from '../host/machine.ts'

export function writeAtomically(path: string, text: string): Promise<void> {
  const { disk } = presentMachine()
  return disk.write(path, text)
}

export function removeDurably(path: string): Promise<void> {
  return presentMachine().disk.remove(path)
}

export async function listWhole(directory: string): Promise<string[]> {
  return [...presentMachine().disk.files.keys()].filter((path) => dirname(path) === directory).map((path) => basename(path))
}

export async function readWhole(path: string): Promise<string | undefined> {
  return presentMachine().disk.files.get(path)
}
