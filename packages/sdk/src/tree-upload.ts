/** A local file or tree into a sandbox (Node.js). Names stay bytes; a tree is one tar stream, read as fast as the sandbox takes it. */
import * as fs from 'node:fs'
import { lstat, open, opendir, readlink, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { SandglassError } from './error.ts'
import type { SandboxPath } from './file-path.ts'
import type { FileOptions, Files } from './files.ts'
import { encodeTarHeader, TAR_END, tarPadding } from './tar-format.ts'

/** What is to be sent of one name: all of it, or the way to it. */
type Entry = { readonly blocks: readonly Uint8Array[] } | { readonly path: Buffer; readonly name: Uint8Array }

export type TransferOptions = FileOptions & { readonly onProgress?: ((bytes: number) => void) | undefined }

const CHUNK_BYTES = 256 * 1024
/** A file of at most so many bytes is read before its turn comes, and so many files at once: each takes four calls, and each call a wait. */
const SMALL_FILE_BYTES = 64 * 1024
const FILES_AHEAD = 16
const NAMES_AT_ONCE = 256
const { constants } = fs
// By number: an object for each of many small files costs as much as the calls.
const openFile = promisify(fs.open)
const statFile = promisify(fs.fstat)
const readFile = promisify(fs.read)
const closeFile = promisify(fs.close)
const SLASH = Buffer.from('/')
const EMPTY = new Uint8Array(0)

export async function uploadTree(files: Files, from: string | Uint8Array, to: SandboxPath, options: TransferOptions): Promise<void> {
  const root = Buffer.from(from)
  const call = { user: options.user, signal: options.signal, timeoutMs: options.timeoutMs, ...progress(options) }
  // What the caller names may itself be a link to what they mean; links inside the tree stay links.
  const info = await stat(root)
  if (info.isDirectory()) {
    await files.writeArchive(to, chunked(treeAsTar(root)), call)
    return
  }
  if (!info.isFile()) throw notTransferable(root)
  // Also a single file goes as an archive: only that carries its time.
  const { directory, name } = splitPath(Buffer.from(to))
  await files.writeArchive(directory, chunked(fileAsArchive(root, name)), call)
}

/** The directory and the last component of a path in a sandbox. */
function splitPath(path: Buffer): { directory: Buffer; name: Buffer } {
  const slash = path.lastIndexOf('/')
  const name = path.subarray(slash + 1)
  if (slash === -1 || name.byteLength === 0) throw new SandglassError('path_invalid', `${path.toString()} is not the absolute path of a file.`)
  return { directory: slash === 0 ? SLASH : path.subarray(0, slash), name }
}

async function* fileAsArchive(path: Buffer, name: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield* fileAsTar(path, name, 0)
  yield TAR_END
}

function progress(options: TransferOptions): { onProgress?: (bytes: number) => void } {
  return options.onProgress === undefined ? {} : { onProgress: options.onProgress }
}

function notTransferable(path: Buffer): SandglassError {
  return new SandglassError('not_a_regular_file', `${path.toString()} is neither a file, a directory nor a link, and cannot be copied.`)
}

const shorter = (path: Buffer): SandglassError => new SandglassError('archive_invalid', `${path.toString()} became shorter while it was read.`)

/** Joins what is smaller than a chunk, so that many small files do not become many small writes. */
async function* chunked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let parts: Uint8Array[] = []
  let size = 0
  for await (const part of source) {
    parts.push(part)
    size += part.byteLength
    if (size < CHUNK_BYTES) continue
    yield Buffer.concat(parts, size)
    parts = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(parts, size)
}

/** The content of a directory, as an archive with names relative to it. */
export async function* treeAsTar(root: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  yield* entryAsTar(root, Buffer.from('.'))
  yield* contentAsTar(root, EMPTY)
  yield TAR_END
}

/** Entries in the order of the directory; those behind the present one are read ahead. */
async function* contentAsTar(directory: Buffer, prefix: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const ahead: Promise<Entry>[] = []
  for await (const found of await opendir(directory, { encoding: 'buffer' as BufferEncoding, bufferSize: NAMES_AT_ONCE })) {
    const name = Buffer.from(found.name)
    const path = Buffer.concat([directory, SLASH, name])
    const relative = prefix.byteLength === 0 ? name : Buffer.concat([prefix, SLASH, name])
    const entry = found.isFile() ? smallFile(path, relative) : Promise.resolve({ path, name: relative })
    // Its turn to fail comes when it is next.
    entry.catch(() => undefined)
    ahead.push(entry)
    if (ahead.length >= FILES_AHEAD) yield* nextOf(ahead)
  }
  while (ahead.length > 0) yield* nextOf(ahead)
}

async function* nextOf(ahead: Promise<Entry>[]): AsyncGenerator<Uint8Array, void, undefined> {
  const entry = await ahead.shift()
  if (entry === undefined) return
  if ('blocks' in entry) {
    yield* entry.blocks
    return
  }
  const { path, name } = entry
  const isDirectory = yield* entryAsTar(path, name)
  if (isDirectory) yield* contentAsTar(path, name)
}

/** Header and content of a file that is small; what is none is read when its turn comes. */
async function smallFile(path: Buffer, name: Uint8Array): Promise<Entry> {
  const fd = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    const info = await statFile(fd)
    if (!info.isFile() || info.size > SMALL_FILE_BYTES) return { path, name }
    const content = Buffer.alloc(info.size + tarPadding(info.size))
    let filled = 0
    while (filled < info.size) {
      const { bytesRead } = await readFile(fd, content, filled, info.size - filled, filled)
      if (bytesRead === 0) throw shorter(path)
      filled += bytesRead
    }
    // The size of the open file counts: it may have been replaced since it was listed.
    const header = encodeTarHeader({ type: 'file', name, size: info.size, mode: info.mode & 0o777, mtimeMs: info.mtimeMs, linkName: EMPTY })
    return { blocks: [...header, content] }
  } finally {
    await closeFile(fd)
  }
}

/** One entry with its content. @returns whether it is a directory */
async function* entryAsTar(path: Buffer, name: Uint8Array): AsyncGenerator<Uint8Array, boolean, undefined> {
  const info = await lstat(path)
  const base = { name, size: 0, mode: info.mode & 0o777, mtimeMs: info.mtimeMs, linkName: EMPTY }
  if (info.isDirectory()) {
    yield* encodeTarHeader({ ...base, type: 'directory' })
    return true
  }
  if (info.isSymbolicLink()) {
    yield* encodeTarHeader({ ...base, type: 'symlink', linkName: await readlink(path, { encoding: 'buffer' }) })
    return false
  }
  if (!info.isFile()) throw notTransferable(path)
  yield* fileAsTar(path, name, constants.O_NOFOLLOW)
  return false
}

/** @param flags `O_NOFOLLOW` where a link would not be what was listed */
async function* fileAsTar(path: Buffer, name: Uint8Array, flags: number): AsyncGenerator<Uint8Array, void, undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags)
  try {
    const info = await handle.stat()
    if (!info.isFile()) throw notTransferable(path)
    // The size of the open file counts: it may have been replaced since it was listed.
    yield* encodeTarHeader({ type: 'file', name, size: info.size, mode: info.mode & 0o777, mtimeMs: info.mtimeMs, linkName: EMPTY })
    for (let left = info.size; left > 0; ) {
      const { bytesRead, buffer } = await handle.read(new Uint8Array(Math.min(CHUNK_BYTES, left)))
      if (bytesRead === 0) throw shorter(path)
      left -= bytesRead
      yield buffer.subarray(0, bytesRead)
    }
    yield new Uint8Array(tarPadding(info.size))
  } finally {
    await handle.close()
  }
}
