/** Files of a mocked sandbox: a map of paths, enough for programs and their tests. No links, owners or modes that refuse anything. */
import { CodedError } from '@sandglass/contract/errors'
import type { FileInfo } from '@sandglass/contract/file'

type Node = { readonly type: 'directory' } | { readonly type: 'file'; readonly bytes: Uint8Array<ArrayBuffer>; readonly version: number }

const DIRECTORIES = ['/', '/tmp', '/root', '/srv', '/etc', '/home']

export class MockFiles {
  readonly #nodes = new Map<string, Node & { mode: string; mtimeMs: number }>()
  readonly #nowMs: () => number
  #versions = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    for (const path of DIRECTORIES) this.#put(path, { type: 'directory' }, '0755')
  }

  isDirectory(path: string): boolean {
    return this.#nodes.get(clean(path))?.type === 'directory'
  }

  /** @throws CodedError `file_not_found`, `is_a_directory` */
  read(path: string): Uint8Array<ArrayBuffer> {
    const node = this.#find(path)
    if (node.type === 'directory') throw new CodedError('is_a_directory', `${path} is a directory.`)
    return node.bytes
  }

  write(path: string, content: Uint8Array | string, options: { readonly parents?: boolean; readonly mode?: string } = {}): FileInfo {
    const at = clean(path)
    const old = this.#nodes.get(at)
    if (old?.type === 'directory') throw new CodedError('is_a_directory', `${path} is a directory.`)
    if (options.parents === true) this.makeDirectory(parentOf(at), true)
    this.#requireParent(at)
    this.#versions += 1
    const bytes = new Uint8Array(typeof content === 'string' ? new TextEncoder().encode(content) : content)
    this.#put(at, { type: 'file', bytes, version: this.#versions }, options.mode ?? old?.mode ?? '0644')
    return this.stat(at)
  }

  makeDirectory(path: string, parents: boolean): FileInfo {
    const at = clean(path)
    const old = this.#nodes.get(at)
    if (old !== undefined && !(parents && old.type === 'directory')) throw new CodedError('file_exists', `${path} exists.`)
    if (old !== undefined) return this.stat(at)
    if (parents) this.makeDirectory(parentOf(at), true)
    this.#requireParent(at)
    this.#put(at, { type: 'directory' }, '0755')
    return this.stat(at)
  }

  stat(path: string): FileInfo {
    const at = clean(path)
    const node = this.#find(at)
    const base = {
      name: at === '/' ? '/' : at.slice(at.lastIndexOf('/') + 1),
      path: at,
      mode: node.mode,
      uid: 0,
      gid: 0,
      user: 'root',
      group: 'root',
      mtime_ms: node.mtimeMs,
    }
    return node.type === 'directory'
      ? { ...base, type: 'directory', size: 0 }
      : { ...base, type: 'file', size: node.bytes.byteLength, etag: `"${node.version}"` }
  }

  /** Ordered by name. @throws CodedError `not_a_directory` */
  list(path: string): FileInfo[] {
    const at = clean(path)
    if (this.#find(at).type !== 'directory') throw new CodedError('not_a_directory', `${path} is not a directory.`)
    return [...this.#nodes.keys()]
      .filter((other) => other !== '/' && parentOf(other) === at)
      .sort()
      .map((other) => this.stat(other))
  }

  remove(path: string, recursive: boolean): void {
    const at = clean(path)
    this.#find(at)
    const inside = [...this.#nodes.keys()].filter((other) => other.startsWith(at === '/' ? '/' : `${at}/`))
    if (inside.length > 0 && !recursive) throw new CodedError('directory_not_empty', `${path} is not empty.`)
    for (const other of [at, ...inside]) this.#nodes.delete(other)
  }

  move(from: string, to: string, overwrite: boolean): FileInfo {
    const [source, target] = [clean(from), clean(to)]
    this.#find(source)
    if (this.#nodes.has(target) && !overwrite) throw new CodedError('file_exists', `${to} exists.`)
    this.#requireParent(target)
    for (const [path, node] of [...this.#nodes]) {
      if (path !== source && !path.startsWith(`${source}/`)) continue
      this.#nodes.delete(path)
      this.#nodes.set(target + path.slice(source.length), node)
    }
    return this.stat(target)
  }

  #find(path: string): Node & { mode: string; mtimeMs: number } {
    const node = this.#nodes.get(clean(path))
    if (node === undefined) throw new CodedError('file_not_found', `${path} does not exist.`)
    return node
  }

  #requireParent(path: string): void {
    const parent = this.#nodes.get(parentOf(path))
    if (parent === undefined) throw new CodedError('file_not_found', `${parentOf(path)} does not exist.`)
    if (parent.type !== 'directory') throw new CodedError('not_a_directory', `${parentOf(path)} is not a directory.`)
  }

  #put(path: string, node: Node, mode: string): void {
    this.#nodes.set(path, { ...node, mode: mode.padStart(4, '0'), mtimeMs: Math.round(this.#nowMs()) })
  }
}

/** @throws CodedError `path_invalid` */
function clean(path: string): string {
  if (!path.startsWith('/') || path.includes('\0')) throw new CodedError('path_invalid', `${path} is not an absolute path.`)
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/'
}
