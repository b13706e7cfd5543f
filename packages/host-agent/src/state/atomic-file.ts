/**
 * Files that are whole or absent after any crash: written beside, flushed, renamed, and the directory flushed too.
 *
 * A temporary file that a crash left behind begins with `.tmp-`; readers skip it and the next write of the same name replaces it.
 */
import { closeSync, constants, fsync, open, write } from 'node:fs'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { giveWay, isDiskFull } from './record-reserve.ts'
import { sharedFlush } from './shared-flush.ts'

const TEMPORARY = '.tmp-'
/** A write is on disk when it returns. */
const FRESH = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_DSYNC

const openFile = promisify(open)
const writeSome = promisify(write)
const syncFile = promisify(fsync)

const flushDirectory = sharedFlush(async (path) => {
  const directory = await openFile(path, constants.O_RDONLY)
  try {
    await syncFile(directory)
  } finally {
    closeSync(directory)
  }
})

/**
 * Durable when it resolves. One writer per path at a time. As few calls as will do, since a claim waits for each of them; none on this thread, because
 * any that changes a directory can wait for somebody else's flush.
 */
export async function writeAtomically(path: string, text: string): Promise<void> {
  for (;;) {
    try {
      return await writeOnce(path, text)
    } catch (error) {
      if (!isDiskFull(error) || !(await giveWay(path))) throw error
    }
  }
}

async function writeOnce(path: string, text: string): Promise<void> {
  const temporary = join(dirname(path), `${TEMPORARY}${basename(path)}`)
  const file = await openFile(temporary, FRESH, 0o600)
  try {
    const bytes = Buffer.from(text, 'utf8')
    for (let written = 0; written < bytes.byteLength; ) written += (await writeSome(file, bytes, written)).bytesWritten
  } finally {
    closeSync(file)
  }
  await rename(temporary, path)
  await flushDirectory(dirname(path))
}

export async function removeDurably(path: string): Promise<void> {
  await rm(path, { force: true })
  await flushDirectory(dirname(path))
}

/** Names of whole files in a directory; what a crash left half-written is removed. */
export async function listWhole(directory: string): Promise<string[]> {
  const names: string[] = []
  for (const name of await readdir(directory)) {
    if (name.startsWith(TEMPORARY)) await rm(join(directory, name), { force: true })
    else names.push(name)
  }
  return names
}

/** Undefined when there is no such file. */
export async function readWhole(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
