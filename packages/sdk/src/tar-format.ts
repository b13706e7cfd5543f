/**
 * Headers of tar archives. Own code, because names of files are bytes, and the libraries for tar that exist here turn them into text.
 * Written: ustar headers, with GNU long-name entries where a name is longer than its field. Read: ustar, PAX and GNU.
 */
import { SandglassError } from './error.ts'

export const TAR_BLOCK_BYTES = 512

export type TarEntryType = 'file' | 'directory' | 'symlink' | 'hardlink'

/** Names are relative, without `/` at the end. */
export type TarEntry = {
  readonly type: TarEntryType
  readonly name: Uint8Array
  /** Bytes of content; 0 unless it is a file. */
  readonly size: number
  /** Permission bits. */
  readonly mode: number
  readonly mtimeMs: number
  /** Target of a link. */
  readonly linkName: Uint8Array
}

const NAME_BYTES = 100
const TYPE_FLAGS = { file: '0', hardlink: '1', symlink: '2', directory: '5' } as const
const ENTRY_TYPES: Readonly<Record<string, TarEntryType>> = { '0': 'file', '\0': 'file', '7': 'file', '1': 'hardlink', '2': 'symlink', '5': 'directory' }
const FIELD = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkName: [157, 100],
  magic: [257, 8],
  prefix: [345, 155],
} as const
const LONG_NAME = new TextEncoder().encode('././@LongLink')
const EMPTY = new Uint8Array(0)

/** Bytes that fill the last block of `size` bytes of content. */
export const tarPadding = (size: number): number => (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES

/** ASCII, which is all that a header's own fields hold. */
function putText(block: Uint8Array, [from, most]: readonly [number, number], text: string): void {
  for (let index = 0; index < Math.min(text.length, most); index += 1) block[from + index] = text.charCodeAt(index)
}

function putOctal(block: Uint8Array, field: readonly [number, number], value: number): void {
  const digits = field[1] - 1
  if (value < 8 ** digits) {
    putText(block, field, value.toString(8).padStart(digits, '0'))
    return
  }
  // GNU base-256: sizes of 8 GiB and more.
  let rest = value
  for (let index = field[0] + field[1] - 1; index > field[0]; index -= 1) {
    block[index] = rest % 256
    rest = Math.floor(rest / 256)
  }
  block[field[0]] = 0x80
}

function checksumOf(block: Uint8Array): number {
  const [from, length] = FIELD.checksum
  // The field itself counts as spaces.
  let sum = length * 0x20
  for (let index = 0; index < TAR_BLOCK_BYTES; index += 1) sum += block[index] ?? 0
  for (let index = from; index < from + length; index += 1) sum -= block[index] ?? 0
  return sum
}

function headerBlock(entry: { name: Uint8Array; linkName: Uint8Array; typeFlag: string; size: number; mode: number; mtimeSeconds: number }): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK_BYTES)
  block.set(entry.name.subarray(0, NAME_BYTES), FIELD.name[0])
  putOctal(block, FIELD.mode, entry.mode)
  putOctal(block, FIELD.uid, 0)
  putOctal(block, FIELD.gid, 0)
  putOctal(block, FIELD.size, entry.size)
  putOctal(block, FIELD.mtime, Math.max(0, entry.mtimeSeconds))
  putText(block, FIELD.type, entry.typeFlag)
  block.set(entry.linkName.subarray(0, NAME_BYTES), FIELD.linkName[0])
  putText(block, FIELD.magic, 'ustar\u000000')
  putText(block, FIELD.checksum, `${checksumOf(block).toString(8).padStart(6, '0')}\0 `)
  return block
}

function longName(typeFlag: 'L' | 'K', name: Uint8Array): Uint8Array[] {
  const size = name.byteLength + 1
  const content = new Uint8Array(size + tarPadding(size))
  content.set(name)
  return [headerBlock({ name: LONG_NAME, linkName: EMPTY, typeFlag, size, mode: 0o644, mtimeSeconds: 0 }), content]
}

/** The blocks before an entry's content. */
export function encodeTarHeader(entry: TarEntry): Uint8Array[] {
  const slash = entry.type === 'directory' ? 1 : 0
  const name = new Uint8Array(entry.name.byteLength + slash)
  name.set(entry.name)
  if (slash === 1) name[entry.name.byteLength] = 0x2f
  return [
    ...(entry.linkName.byteLength > NAME_BYTES ? longName('K', entry.linkName) : []),
    ...(name.byteLength > NAME_BYTES ? longName('L', name) : []),
    headerBlock({
      name,
      linkName: entry.linkName,
      typeFlag: TYPE_FLAGS[entry.type],
      size: entry.size,
      mode: entry.mode,
      mtimeSeconds: Math.floor(entry.mtimeMs / 1000),
    }),
  ]
}

/** What ends an archive. */
export const TAR_END: Uint8Array = new Uint8Array(2 * TAR_BLOCK_BYTES)

const refuse = (detail: string): SandglassError => new SandglassError('archive_invalid', detail)

function getBytes(block: Uint8Array, [start, length]: readonly [number, number]): Uint8Array {
  const field = block.subarray(start, start + length)
  const end = field.indexOf(0)
  return end === -1 ? field : field.subarray(0, end)
}

function getNumber(block: Uint8Array, field: readonly [number, number]): number {
  const first = block[field[0]] ?? 0
  if (first === 0x80) {
    let value = 0
    for (const byte of block.subarray(field[0] + 1, field[0] + field[1])) value = value * 256 + byte
    if (!Number.isSafeInteger(value)) throw refuse('The archive has a number that is too large.')
    return value
  }
  const text = new TextDecoder('latin1').decode(getBytes(block, field)).trim()
  if (text === '') return 0
  if (!/^[0-7]+$/.test(text)) throw refuse('The archive has a header with a number that is none.')
  return Number.parseInt(text, 8)
}

export type RawHeader = { readonly typeFlag: string; readonly entry: TarEntry | undefined; readonly size: number; readonly name: Uint8Array }

/** @returns undefined for the block of zeros that ends an archive. @throws SandglassError `archive_invalid` */
export function decodeTarHeader(block: Uint8Array): RawHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined
  if (checksumOf(block) !== getNumber(block, FIELD.checksum)) throw refuse('The archive is damaged: a header has a wrong checksum.')
  const typeFlag = String.fromCharCode(block[FIELD.type[0]] ?? 0)
  const isUstar = new TextDecoder('latin1').decode(block.subarray(FIELD.magic[0], FIELD.magic[0] + 6)) === 'ustar\0'
  const prefix = isUstar ? getBytes(block, FIELD.prefix) : EMPTY
  const name = joinPath(prefix, getBytes(block, FIELD.name))
  const size = getNumber(block, FIELD.size)
  const type = ENTRY_TYPES[typeFlag]
  if (type === undefined) return { typeFlag, entry: undefined, size, name }
  const entry = {
    type: type === 'file' && name.at(-1) === 0x2f ? ('directory' as const) : type,
    name,
    size: type === 'file' ? size : 0,
    mode: getNumber(block, FIELD.mode) & 0o7777,
    mtimeMs: getNumber(block, FIELD.mtime) * 1000,
    linkName: getBytes(block, FIELD.linkName),
  }
  return { typeFlag, entry, size: entry.size, name }
}

function joinPath(prefix: Uint8Array, name: Uint8Array): Uint8Array {
  if (prefix.byteLength === 0) return name.slice()
  const joined = new Uint8Array(prefix.byteLength + 1 + name.byteLength)
  joined.set(prefix)
  joined[prefix.byteLength] = 0x2f
  joined.set(name, prefix.byteLength + 1)
  return joined
}

/** Records of a PAX header: `LENGTH key=value\n`, values as bytes. @throws SandglassError `archive_invalid` */
export function decodePaxRecords(content: Uint8Array): Map<string, Uint8Array> {
  const records = new Map<string, Uint8Array>()
  for (let position = 0; position < content.byteLength; ) {
    const space = content.indexOf(0x20, position)
    const length = space === -1 ? Number.NaN : Number(new TextDecoder('latin1').decode(content.subarray(position, space)))
    const equals = content.indexOf(0x3d, space)
    const end = position + length
    if (!Number.isSafeInteger(length) || end > content.byteLength || equals === -1 || equals >= end || content[end - 1] !== 0x0a) {
      throw refuse('The archive has a PAX header that is damaged.')
    }
    records.set(new TextDecoder().decode(content.subarray(space + 1, equals)), content.slice(equals + 1, end - 1))
    position = end
  }
  return records
}
