/** Files of a sandbox. Every path is resolved inside the sandbox, as the chosen user. */
import { type ArchiveExtracted, ArchiveExtractedSchema, FileInfoSchema, FileListSchema, type FileWritten, FileWrittenSchema } from '@sandglass/contract/file'
import { parserOf } from '@sandglass/contract/schema'
import { download, upload } from '#platform'
import type { DataPlane } from './data-plane.ts'
import { concatBytes, textOfBytes } from './encoding.ts'
import { SandglassError } from './error.ts'
import { type FileInfo, fileInfoOf } from './file-info.ts'
import { flag, pathField, pathQuery, type SandboxPath } from './file-path.ts'
import { type FileSource, fileBodyOf } from './file-source.ts'
import { type FileEvent, type WatchOptions, watchFiles } from './file-watch.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { chunksOf } from './streams.ts'
import { bodyOf, type CallOptions } from './transport.ts'

export type FileOptions = CallOptions & {
  /** A user of the sandbox, or a uid, or `uid:gid`. Default root. */
  readonly user?: string | undefined
}

export type ReadOptions = FileOptions & {
  /** First and last byte wanted, both included; without `end` to the end of the file. */
  readonly range?: { readonly start: number; readonly end?: number } | undefined
  /** Only if the file is still this one. @throws SandglassError `precondition_failed` */
  readonly ifMatch?: string | undefined
}

export type WriteOptions = FileOptions & {
  /** Permission bits. Default: those of the file that is replaced, else 0o644. */
  readonly mode?: number | undefined
  /** Make missing directories. Default false. */
  readonly parents?: boolean | undefined
  /** Only if the file that is there is this one. */
  readonly ifMatch?: string | undefined
  /** `*`: only if there is none. */
  readonly ifNoneMatch?: '*' | undefined
  /** Called with the number of bytes that are on their way. */
  readonly onProgress?: ((bytes: number) => void) | undefined
}

/** A file that is being read. */
export type FileContent = {
  /** Bytes that will come, when the server knows. */
  readonly size: number | undefined
  readonly etag: string | undefined
  /** Read it, or cancel it. It fails when the connection breaks; it never just ends early. */
  readonly body: ReadableStream<Uint8Array>
}

const FILE_OPTIONS: Known<FileOptions> = { user: true, signal: true, timeoutMs: true }
const READ_OPTIONS: Known<ReadOptions> = { ...FILE_OPTIONS, range: true, ifMatch: true }
const WRITE_OPTIONS: Known<WriteOptions> = { ...FILE_OPTIONS, mode: true, parents: true, ifMatch: true, ifNoneMatch: true, onProgress: true }

const TRANSFER_TIMEOUT_MS = Number.POSITIVE_INFINITY
const infoParser = parserOf(FileInfoSchema)
const listParser = parserOf(FileListSchema)
const writtenParser = parserOf(FileWrittenSchema)
const extractedParser = parserOf(ArchiveExtractedSchema)

const octal = (mode: number): string => mode.toString(8).padStart(4, '0')

/** Errors of every call: `file_not_found`, `permission_denied`, `path_invalid`, `user_not_found`, `sandbox_ended`, `lost_contact`. */
export class Files {
  readonly #plane: DataPlane

  /** @internal */
  constructor(plane: DataPlane) {
    this.#plane = plane
  }

  /**
   * The content of a file as a stream. No time limit unless you give one.
   * @throws SandglassError `is_a_directory`, `not_a_regular_file`, `range_not_satisfiable`
   */
  async open(path: SandboxPath, options: ReadOptions = {}): Promise<FileContent> {
    onlyKnown('files.open', options, READ_OPTIONS)
    const { user, range, ifMatch, ...call } = options
    const response = await this.#plane.transport.open({
      ...call,
      method: 'GET',
      url: `${this.#plane.base}/files${pathQuery(path, { user })}`,
      headers: {
        ...(range === undefined ? {} : { range: `bytes=${range.start}-${range.end ?? ''}` }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      },
      repeatable: true,
    })
    const length = response.headers.get('content-length')
    return {
      size: length === null ? undefined : Number(length),
      etag: response.headers.get('etag') ?? undefined,
      body: bodyOf(response, options.signal),
    }
  }

  /** The content of a file, in memory. @throws SandglassError as `open` */
  async read(path: SandboxPath, options: ReadOptions = {}): Promise<Uint8Array> {
    const { body } = await this.open(path, options)
    const chunks: Uint8Array[] = []
    for await (const chunk of chunksOf(body)) chunks.push(chunk)
    return concatBytes(chunks)
  }

  /** The content of a file as UTF-8; bytes that are not UTF-8 become U+FFFD. @throws SandglassError as `open` */
  async readText(path: SandboxPath, options: ReadOptions = {}): Promise<string> {
    return textOfBytes(await this.read(path, options))
  }

  /**
   * Writes a whole file. It appears at once, complete, when this resolves; when it fails, what was there before is untouched.
   * @param source text (as UTF-8), bytes, a blob, a stream, or a Node.js `FileHandle`
   * @throws SandglassError `is_a_directory`, `no_space`, `precondition_failed`
   */
  async write(path: SandboxPath, source: FileSource, options: WriteOptions = {}): Promise<FileWritten> {
    onlyKnown('files.write', options, WRITE_OPTIONS)
    const { user, mode, parents, ifMatch, ifNoneMatch, onProgress, ...call } = options
    const { body, size, repeatable } = await fileBodyOf(source, onProgress)
    return this.#plane.transport.json(
      {
        ...call,
        timeoutMs: call.timeoutMs ?? TRANSFER_TIMEOUT_MS,
        method: 'PUT',
        url: `${this.#plane.base}/files${pathQuery(path, { user, mode: mode === undefined ? undefined : octal(mode), parents: flag(parents) })}`,
        headers: {
          'content-type': 'application/octet-stream',
          ...(size === undefined ? {} : { 'content-length': String(size) }),
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
          ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
        },
        body,
        // With a condition, a repeat after a lost answer would be refused because of its own first success.
        repeatable: repeatable && ifMatch === undefined && ifNoneMatch === undefined,
      },
      writtenParser,
    )
  }

  /** What a path is; of a symbolic link itself, unless `follow`. */
  async stat(path: SandboxPath, options: FileOptions & { readonly follow?: boolean | undefined } = {}): Promise<FileInfo> {
    const { user, follow, ...call } = options
    const url = `${this.#plane.base}/files/stat${pathQuery(path, { user, follow: flag(follow) })}`
    return fileInfoOf(await this.#plane.transport.json({ ...call, method: 'GET', url, repeatable: true }, infoParser))
  }

  /** Is there something at this path? */
  async exists(path: SandboxPath, options: FileOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options)
      return true
    } catch (error) {
      if (error instanceof SandglassError && error.code === 'file_not_found') return false
      throw error
    }
  }

  /** Entries of a directory, ordered by name, page by page. @throws SandglassError `not_a_directory` */
  async *list(path: SandboxPath, options: FileOptions & { readonly pageSize?: number | undefined } = {}): AsyncGenerator<FileInfo, void, undefined> {
    const { user, pageSize, ...call } = options
    for (let cursor: string | undefined; ; ) {
      const query = pathQuery(path, { user, cursor, limit: pageSize === undefined ? undefined : String(pageSize) })
      const page = await this.#plane.transport.json({ ...call, method: 'GET', url: `${this.#plane.base}/files/list${query}`, repeatable: true }, listParser)
      for (const item of page.items) yield fileInfoOf(item)
      if (page.next_cursor === null) return
      cursor = page.next_cursor
    }
  }

  /** Removes a file, a link or, with `recursive`, a tree. Never follows links. @throws SandglassError `directory_not_empty` */
  async remove(path: SandboxPath, options: FileOptions & { readonly recursive?: boolean | undefined } = {}): Promise<void> {
    const { user, recursive, ...call } = options
    const url = `${this.#plane.base}/files${pathQuery(path, { user, recursive: flag(recursive) })}`
    // A repeat after a lost answer would not find the file any more.
    await this.#plane.transport.empty({ ...call, method: 'DELETE', url, repeatable: false })
  }

  /** @throws SandglassError `file_exists` unless `parents` */
  mkdir(path: SandboxPath, options: FileOptions & { readonly parents?: boolean | undefined; readonly mode?: number | undefined } = {}): Promise<FileInfo> {
    const { user, parents, mode, ...call } = options
    const body = { ...pathField('path', path), parents, user, mode: mode === undefined ? undefined : octal(mode) }
    return this.#post('mkdir', body, call, parents === true)
  }

  /** Renames; replaces what is at `to` unless `overwrite: false`. @throws SandglassError `file_exists` */
  move(from: SandboxPath, to: SandboxPath, options: FileOptions & { readonly overwrite?: boolean | undefined } = {}): Promise<FileInfo> {
    const { user, overwrite, ...call } = options
    return this.#post('move', { ...pathField('from', from), ...pathField('to', to), overwrite, user }, call, false)
  }

  /** Copies a file or a tree inside the sandbox. @throws SandglassError `file_exists`, `no_space` */
  copy(from: SandboxPath, to: SandboxPath, options: FileOptions & { readonly overwrite?: boolean | undefined } = {}): Promise<FileInfo> {
    const { user, overwrite, ...call } = options
    return this.#post(
      'copy',
      { ...pathField('from', from), ...pathField('to', to), overwrite, user },
      { ...call, timeoutMs: call.timeoutMs ?? TRANSFER_TIMEOUT_MS },
      false,
    )
  }

  /** Changes permission bits, owner, or both. */
  chmod(
    path: SandboxPath,
    change: {
      readonly mode?: number | undefined
      readonly uid?: number | undefined
      readonly gid?: number | undefined
      readonly recursive?: boolean | undefined
    },
    options: FileOptions = {},
  ): Promise<FileInfo> {
    const { user, ...call } = options
    const { mode, uid, gid, recursive } = change
    return this.#post('chmod', { ...pathField('path', path), mode: mode === undefined ? undefined : octal(mode), uid, gid, recursive, user }, call, true)
  }

  async #post(what: string, json: object, call: CallOptions, repeatable: boolean): Promise<FileInfo> {
    return fileInfoOf(await this.#plane.transport.json({ ...call, method: 'POST', url: `${this.#plane.base}/files/${what}`, json, repeatable }, infoParser))
  }

  /** Changes as they happen. After a lost connection an `overflow` says that some may have been missed. */
  watch(path: SandboxPath, options: WatchOptions = {}): AsyncGenerator<FileEvent, void, undefined> {
    return watchFiles(this.#plane, path, options)
  }

  /**
   * The content of a directory (or one file) as a tar stream.
   * @throws SandglassError `file_not_found`
   */
  async readArchive(path: SandboxPath, options: FileOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { user, ...call } = options
    const url = `${this.#plane.base}/files/archive${pathQuery(path, { user })}`
    const response = await this.#plane.transport.open({ ...call, method: 'GET', url, headers: { accept: 'application/x-tar' }, repeatable: true })
    return bodyOf(response, options.signal)
  }

  /**
   * Unpacks a tar (or tar.gz) below a directory, which is made when it is missing.
   * @throws SandglassError `archive_invalid` names the entry; `archive_limit`, `no_space`
   */
  async writeArchive(
    path: SandboxPath,
    source: FileSource,
    options: FileOptions & { readonly onProgress?: (bytes: number) => void } = {},
  ): Promise<ArchiveExtracted> {
    const { user, onProgress, ...call } = options
    const { body } = await fileBodyOf(source, onProgress)
    return this.#plane.transport.json(
      {
        ...call,
        timeoutMs: call.timeoutMs ?? TRANSFER_TIMEOUT_MS,
        method: 'PUT',
        url: `${this.#plane.base}/files/archive${pathQuery(path, { user })}`,
        headers: { 'content-type': 'application/x-tar' },
        body,
        repeatable: false,
      },
      extractedParser,
    )
  }

  /**
   * Copies a local file or tree into the sandbox (Node.js). `to` is what it becomes, not the directory to put it in. Modes, times and links are kept.
   * @throws SandglassError `not_a_regular_file` for a local socket, pipe or device: nothing is left out silently
   */
  async upload(from: string | Uint8Array, to: SandboxPath, options: FileOptions & { readonly onProgress?: (bytes: number) => void } = {}): Promise<void> {
    await upload(this, from, to, options)
  }

  /**
   * Copies a file or tree out of the sandbox (Node.js). `to` is what it becomes. What the sandbox sends is not trusted: no entry can leave `to`.
   * @throws SandglassError `archive_invalid` names the entry that was refused
   */
  async download(from: SandboxPath, to: string | Uint8Array, options: FileOptions & { readonly onProgress?: (bytes: number) => void } = {}): Promise<void> {
    await download(this, from, to, options)
  }
}
