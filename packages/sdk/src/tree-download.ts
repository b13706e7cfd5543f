/**
 * A file or tree out of a sandbox (Node.js).
 *
 * The archive is hostile. No entry leaves the target: names with `..` or a leading `/` are refused, every directory on the way to an entry is
 * looked at (not through links) before it is used, and symbolic links are made last, when nothing is written any more. Devices,
 * pipes and sockets are refused by name; nothing is left out silently. Set-user and set-group bits are not kept.
 */
import { constants, type Stats } from 'node:fs'
import { chmod, link, lstat, mkdir, open, rename, rm, symlink, unlink, utimes } from 'node:fs/promises'
import { SandglassError } from './error.ts'
import type { SandboxPath } from './file-path.ts'
import type { Files } from './files.ts'
import type { TarEntry } from './tar-format.ts'
import { readTar, type TarItem } from './tar-reader.ts'
import type { TransferOptions } from './tree-upload.ts'

const SLASH = 0x2f
const PERMISSIONS = 0o777

export async function downloadTree(files: Files, from: SandboxPath, to: string | Uint8Array, options: TransferOptions): Promise<void> {
  const info = await files.stat(from, { user: options.user, signal: options.signal, timeoutMs: options.timeoutMs, follow: true })
  if (info.type === 'file') return downloadFile(files, from, Buffer.from(to), info.mode & PERMISSIONS, info.mtime, options)
  if (info.type !== 'directory') throw new SandglassError('not_a_regular_file', `${info.path} is a ${info.type} and cannot be copied.`)
  const body = await files.readArchive(from, { user: options.user, signal: options.signal })
  await extractTar(counted(body, options.onProgress), Buffer.from(to))
}

async function* counted(source: AsyncIterable<Uint8Array>, onProgress: ((bytes: number) => void) | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0
  for await (const chunk of source) {
    yield chunk
    size += chunk.byteLength
    onProgress?.(size)
  }
}

/** Into a temporary file beside the target, then renamed: a download that fails leaves the target as it was. */
async function downloadFile(files: Files, from: SandboxPath, to: Buffer, mode: number, mtime: Date, options: TransferOptions): Promise<void> {
  const temporary = Buffer.concat([to, Buffer.from(`.sandglass-${crypto.randomUUID().slice(0, 8)}`)])
  const content = await files.open(from, { user: options.user, signal: options.signal })
  try {
    await writeNew(temporary, counted(content.body, options.onProgress), mode, mtime)
    await rename(temporary, to)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function writeNew(path: Buffer, content: AsyncIterable<Uint8Array>, mode: number, mtime: Date): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
  try {
    for await (const chunk of content) for (let done = 0; done < chunk.byteLength; ) done += (await handle.write(chunk, done)).bytesWritten
    await handle.chmod(mode)
    await handle.utimes(mtime, mtime)
  } finally {
    await handle.close()
  }
}

/** @throws SandglassError `archive_invalid` */
export async function extractTar(source: AsyncIterable<Uint8Array>, root: Buffer): Promise<void> {
  await mkdir(root, { recursive: true })
  const target = new ExtractTarget(root)
  for await (const item of readTar(source)) await target.put(item)
  await target.finish()
}

class ExtractTarget {
  readonly #root: Buffer
  readonly #links: { path: Buffer; to: Uint8Array }[] = []
  readonly #directories: { path: Buffer; entry: TarEntry }[] = []
  /** The directory that was looked at last; entries of one directory follow one another. */
  #checked: Buffer | undefined

  constructor(root: Buffer) {
    this.#root = root
  }

  async put({ entry, content }: TarItem): Promise<void> {
    const parts = componentsOf(entry.name)
    const path = this.#pathOf(parts)
    await this.#enter(parts.slice(0, -1), entry)
    if (entry.type === 'directory') {
      await this.#directory(path, entry)
      if (parts.length > 0) this.#directories.push({ path, entry })
      return
    }
    if (parts.length === 0) throw refuse(entry, 'has no name')
    if (entry.type === 'symlink') this.#links.push({ path, to: entry.linkName.slice() })
    else if (entry.type === 'hardlink') await this.#hardLink(path, entry)
    else {
      await makeRoom(path, entry)
      await writeNew(path, content, entry.mode & PERMISSIONS, new Date(entry.mtimeMs))
    }
  }

  /** Links, then times and modes of directories, innermost first: making an entry changes the time of its directory. */
  async finish(): Promise<void> {
    for (const { path, to } of this.#links) {
      await unlinkIfThere(path)
      await symlink(Buffer.from(to), path)
    }
    for (const { path, entry } of this.#directories.reverse()) {
      const found = await lstat(path)
      if (!found.isDirectory()) continue
      await chmod(path, entry.mode & PERMISSIONS)
      await utimes(path, new Date(entry.mtimeMs), new Date(entry.mtimeMs))
    }
  }

  #pathOf(parts: readonly Uint8Array[]): Buffer {
    return Buffer.concat([this.#root, ...parts.flatMap((part) => [Uint8Array.of(SLASH), part])])
  }

  /** Makes the directories above an entry, each looked at before the next: a link among them would lead out of the target. */
  async #enter(parts: readonly Uint8Array[], entry: TarEntry): Promise<void> {
    const full = this.#pathOf(parts)
    if (this.#checked?.equals(full) === true) return
    for (let depth = 1; depth <= parts.length; depth += 1) await this.#directory(this.#pathOf(parts.slice(0, depth)), entry)
    this.#checked = full
  }

  async #directory(path: Buffer, entry: TarEntry): Promise<void> {
    if (path.byteLength === this.#root.byteLength) return
    const found = await lookAt(path)
    if (found === undefined) await mkdir(path, 0o700)
    else if (!found.isDirectory()) throw refuse(entry, 'would be written through something that is not a directory')
  }

  async #hardLink(path: Buffer, entry: TarEntry): Promise<void> {
    const parts = componentsOf(entry.linkName)
    await this.#enter(parts.slice(0, -1), entry)
    const original = this.#pathOf(parts)
    const found = await lookAt(original)
    if (found?.isFile() !== true) throw refuse(entry, 'is a hard link to something that is not a file of this archive')
    await makeRoom(path, entry)
    await link(original, path)
  }
}

function refuse(entry: TarEntry, why: string): SandglassError {
  return new SandglassError('archive_invalid', `${JSON.stringify(new TextDecoder().decode(entry.name))} ${why}.`)
}

/** @throws SandglassError `archive_invalid` for names that lead elsewhere */
function componentsOf(name: Uint8Array): Uint8Array[] {
  const text = Buffer.from(name).toString('latin1')
  if (text.startsWith('/') || text.includes('\0')) throw new SandglassError('archive_invalid', `${JSON.stringify(text)} is not a relative name.`)
  const parts = text.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw new SandglassError('archive_invalid', `${JSON.stringify(text)} leads out of the target.`)
  return parts.map((part) => Buffer.from(part, 'latin1'))
}

async function lookAt(path: Buffer): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function makeRoom(path: Buffer, entry: TarEntry): Promise<void> {
  const found = await lookAt(path)
  if (found === undefined) return
  if (found.isDirectory()) throw refuse(entry, 'is a file, and there is a directory of that name')
  await unlink(path)
}

async function unlinkIfThere(path: Buffer): Promise<void> {
  const found = await lookAt(path)
  if (found !== undefined && !found.isDirectory()) await unlink(path)
}
