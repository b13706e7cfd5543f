/** A file that is there whole, with its mode and owner, or not there: written beside its place, synced, renamed. */
import { closeSync, fchownSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'

export type Owner = { readonly uid: number; readonly gid: number }

export function writeFileAtomic(path: string, text: string, mode: number, owner?: Owner): void {
  const beside = `${path}.new`
  rmSync(beside, { force: true })
  const file = openSync(beside, 'wx', mode)
  try {
    if (owner !== undefined) fchownSync(file, owner.uid, owner.gid)
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(beside, path)
}
