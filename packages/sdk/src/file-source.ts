/** What can be written to a file, and how it becomes the body of a request. */
import { STREAMS_BODIES } from '#platform'
import { bytesOfText } from './encoding.ts'
import { chunksOf, streamOf } from './streams.ts'

/** The part of Node.js's `FileHandle` that is used: its content from the beginning. */
export type ReadableHandle = {
  stat(): Promise<{ readonly size: number }>
  createReadStream(options: { start: number; autoClose: boolean }): AsyncIterable<Uint8Array>
}

export type FileSource = string | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | ReadableHandle

export type FileBody = {
  /** A function makes it anew for each attempt. */
  readonly body: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>)
  /** Bytes, when known before they are read. */
  readonly size: number | undefined
  /** Can it be sent a second time? */
  readonly repeatable: boolean
}

const CHUNK_BYTES = 256 * 1024

function isHandle(source: object): source is ReadableHandle {
  return 'createReadStream' in source && 'stat' in source
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let start = 0; start < bytes.byteLength; start += CHUNK_BYTES) yield bytes.subarray(start, start + CHUNK_BYTES)
}

async function* counted(source: AsyncIterable<Uint8Array>, onProgress: (bytes: number) => void): AsyncGenerator<Uint8Array, void, undefined> {
  let sent = 0
  for await (const chunk of source) {
    yield chunk
    sent += chunk.byteLength
    onProgress(sent)
  }
}

export async function fileBodyOf(source: FileSource, onProgress: ((bytes: number) => void) | undefined): Promise<FileBody> {
  const bytes = typeof source === 'string' ? bytesOfText(source) : source
  if (bytes instanceof Uint8Array) {
    if (onProgress === undefined) return unwatched(bytes)
    return stream(slices(bytes), bytes.byteLength, onProgress)
  }
  if (bytes instanceof Blob) return STREAMS_BODIES ? stream(chunksOf(bytes.stream()), bytes.size, onProgress) : whole(bytes, onProgress)
  if (isHandle(bytes)) return stream(bytes.createReadStream({ start: 0, autoClose: false }), (await bytes.stat()).size, onProgress)
  return stream(bytes instanceof ReadableStream ? chunksOf(bytes) : bytes, undefined, onProgress)
}

/** Many bytes go out piece by piece where they can: a request that is given them whole copies them several times first. */
function unwatched(bytes: Uint8Array): FileBody {
  const size = bytes.byteLength
  if (STREAMS_BODIES && size > CHUNK_BYTES) return { body: () => streamOf(slices(bytes)), size, repeatable: true }
  return { body: new Uint8Array(bytes), size, repeatable: true }
}

async function stream(source: AsyncIterable<Uint8Array>, size: number | undefined, onProgress: ((bytes: number) => void) | undefined): Promise<FileBody> {
  if (!STREAMS_BODIES) return whole(await collected(source), onProgress)
  return { body: streamOf(onProgress === undefined ? source : counted(source, onProgress)), size, repeatable: false }
}

/** A browser sends what is there; that it all is on its way is the only progress it tells. */
function whole(blob: Blob, onProgress: ((bytes: number) => void) | undefined): FileBody {
  onProgress?.(blob.size)
  return { body: blob, size: blob.size, repeatable: true }
}

async function collected(source: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of source) parts.push(new Uint8Array(chunk))
  return new Blob(parts)
}
