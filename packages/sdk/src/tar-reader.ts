/** Reads a tar stream entry by entry, in bounded memory. The archive comes from a sandbox and is hostile. */
import { SandglassError } from './error.ts'
import { decodePaxRecords, decodeTarHeader, TAR_BLOCK_BYTES, type TarEntry, tarPadding } from './tar-format.ts'

/** Long names and PAX headers are kept whole; a path has at most 4,096 bytes. */
const MAX_EXTENSION_BYTES = 64 * 1024

export type TarItem = {
  readonly entry: TarEntry
  /** Read it to its end, or not at all. */
  readonly content: AsyncIterable<Uint8Array>
}

/** Takes exact numbers of bytes from chunks of any size. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** At least one byte and at most `max`, or undefined at the end. */
  async some(max: number): Promise<Uint8Array | undefined> {
    while (this.#chunk.byteLength === 0) {
      const next = await this.#source.next()
      if (next.done === true) return undefined
      this.#chunk = next.value
    }
    const part = this.#chunk.subarray(0, max)
    this.#chunk = this.#chunk.subarray(part.byteLength)
    return part
  }

  async exactly(size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size)
    for (let filled = 0; filled < size; ) {
      const part = await this.some(size - filled)
      if (part === undefined) throw cutOff()
      bytes.set(part, filled)
      filled += part.byteLength
    }
    return bytes
  }

  async skip(size: number): Promise<void> {
    for (let left = size; left > 0; ) {
      const part = await this.some(left)
      if (part === undefined) throw cutOff()
      left -= part.byteLength
    }
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }
}

const cutOff = (): SandglassError => new SandglassError('archive_invalid', 'The archive ends in the middle.')

/** Names and numbers that entries before the real header give. */
type Extension = { name?: Uint8Array; linkName?: Uint8Array; mtimeMs?: number; size?: number }

async function readExtension(reader: ByteReader, typeFlag: string, size: number, extension: Extension): Promise<void> {
  if (size > MAX_EXTENSION_BYTES) throw new SandglassError('archive_invalid', 'The archive has a name that is too long.')
  const content = await reader.exactly(size)
  await reader.skip(tarPadding(size))
  if (typeFlag === 'g') return
  if (typeFlag === 'L' || typeFlag === 'K') {
    const end = content.indexOf(0)
    const name = end === -1 ? content : content.subarray(0, end)
    if (typeFlag === 'L') extension.name = name
    else extension.linkName = name
    return
  }
  const records = decodePaxRecords(content)
  const path = records.get('path')
  const linkPath = records.get('linkpath')
  if (path !== undefined) extension.name = path
  if (linkPath !== undefined) extension.linkName = linkPath
  for (const [key, value] of records)
    if (key.startsWith('GNU.sparse')) throw new SandglassError('archive_invalid', `The archive has a sparse file (${key}=${value.byteLength} bytes).`)
  const mtime = paxNumber(records, 'mtime')
  if (mtime !== undefined) extension.mtimeMs = Math.floor(mtime * 1000)
  const length = paxNumber(records, 'size')
  if (length !== undefined) extension.size = length
}

function paxNumber(records: ReadonlyMap<string, Uint8Array>, key: string): number | undefined {
  const value = records.get(key)
  if (value === undefined) return undefined
  const text = new TextDecoder('latin1').decode(value)
  const number = Number(text)
  if (text === '' || !Number.isFinite(number) || number < 0 || number > Number.MAX_SAFE_INTEGER)
    throw new SandglassError('archive_invalid', `The archive has a PAX ${key} that is no number.`)
  return number
}

const EXTENSIONS = 'gxLK'

/** @throws SandglassError `archive_invalid` for a damaged or cut-off archive and for kinds of entries that are not files, directories or links */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarItem, void, undefined> {
  const reader = new ByteReader(source)
  let extension: Extension = {}
  try {
    for (;;) {
      const header = decodeTarHeader(await reader.exactly(TAR_BLOCK_BYTES))
      if (header === undefined) {
        while ((await reader.some(TAR_BLOCK_BYTES)) !== undefined);
        return
      }
      if (EXTENSIONS.includes(header.typeFlag)) {
        await readExtension(reader, header.typeFlag, header.size, extension)
        continue
      }
      if (header.entry === undefined)
        throw new SandglassError('archive_invalid', `${text(extension.name ?? header.name)} is neither a file, a directory nor a link.`)
      const entry = extended(header.entry, extension)
      extension = {}
      let left = entry.size
      yield {
        entry,
        content: (async function* () {
          while (left > 0) {
            const part = await reader.some(left)
            if (part === undefined) throw cutOff()
            left -= part.byteLength
            yield part
          }
        })(),
      }
      await reader.skip(left + tarPadding(entry.size))
    }
  } finally {
    await reader.close()
  }
}

function extended(entry: TarEntry, extension: Extension): TarEntry {
  const name = extension.name ?? entry.name
  const size = entry.type === 'file' ? (extension.size ?? entry.size) : 0
  return { ...entry, name, size, linkName: extension.linkName ?? entry.linkName, mtimeMs: extension.mtimeMs ?? entry.mtimeMs }
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
