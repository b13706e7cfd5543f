/** The two sides of `cp`, and what a copy becomes, as pure functions. Rules of `docker cp`. */
import { UsageError } from './usage-error.ts'

export type CopySide =
  | { readonly type: 'remote'; readonly sandbox: string; readonly path: Buffer }
  | { readonly type: 'local'; readonly path: Buffer }
  /** `-`: standard input or output, one file. */
  | { readonly type: 'stream' }

const REMOTE = /^([a-z0-9][a-z0-9-]*):/
const SLASH = 0x2f

/** `ID:path` is remote; write `./a:b` for a local name with a colon. A remote path without `/` counts from `/`. */
export function parseCopySide(argument: Uint8Array): CopySide {
  const bytes = Buffer.from(argument)
  const text = bytes.toString('latin1')
  if (text === '') throw new UsageError('an empty path is neither a file nor a directory')
  if (text === '-') return { type: 'stream' }
  const sandbox = REMOTE.exec(text)?.[1]
  if (sandbox === undefined) return { type: 'local', path: bytes }
  const path = bytes.subarray(sandbox.length + 1)
  return { type: 'remote', sandbox, path: path[0] === SLASH ? path : Buffer.concat([Buffer.from('/'), path]) }
}

export type Kind = 'file' | 'directory' | 'nothing'

/** Name of what a path leads to. */
export function baseName(path: Buffer): Buffer {
  const trimmed = trimSlashes(path)
  const name = trimmed.subarray(trimmed.lastIndexOf('/') + 1)
  return name.equals(Buffer.from('.')) || name.equals(Buffer.from('..')) ? Buffer.alloc(0) : name
}

export function trimSlashes(path: Buffer): Buffer {
  let end = path.byteLength
  while (end > 1 && path[end - 1] === SLASH) end -= 1
  return path.subarray(0, end)
}

const endsWithSlash = (path: Buffer): boolean => path.at(-1) === SLASH

/** `dir/.` means the content of dir. */
export function isContentOnly(source: Buffer): boolean {
  const text = source.toString('latin1')
  return text === '.' || text.endsWith('/.')
}

/**
 * What the copy becomes.
 * @param source as it was written; its kind is `file` or `directory`
 * @param target as it was written, and what is there now
 * @throws Error when it cannot be
 */
export function planCopy(source: { path: Buffer; kind: Kind }, target: { path: Buffer; kind: Kind }): Buffer {
  const to = trimSlashes(target.path)
  const shown = target.path.toString()
  if (source.kind === 'nothing') throw new Error(`${source.path.toString()} does not exist`)
  if (target.kind === 'directory') {
    if (source.kind === 'directory' && isContentOnly(source.path)) return to
    const name = baseName(source.path)
    return name.byteLength === 0 ? to : Buffer.concat([to, to.equals(Buffer.from('/')) ? Buffer.alloc(0) : Buffer.from('/'), name])
  }
  if (target.kind === 'file') {
    if (source.kind === 'directory') throw new Error(`${shown} is a file; a directory cannot be copied over it`)
    if (endsWithSlash(target.path)) throw new Error(`${shown} is not a directory`)
    return to
  }
  if (source.kind === 'file' && endsWithSlash(target.path)) throw new Error(`the directory ${shown} does not exist`)
  return to
}
