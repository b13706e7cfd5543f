/** Writes tar entries by hand, also ones that no sane program makes. */

export type TarEntry = {
  readonly name: string
  /** `0` file, `1` hard link, `2` symbolic link, `3` and `4` devices, `5` directory, `6` FIFO. */
  readonly type?: '0' | '1' | '2' | '3' | '4' | '5' | '6'
  readonly content?: Uint8Array
  readonly target?: string
  readonly mode?: number
}

const BLOCK = 512

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK)
  const size = entry.content?.byteLength ?? 0
  block.write(entry.name, 0, 100, 'utf8')
  block.write(`${(entry.mode ?? 0o644).toString(8).padStart(7, '0')}\0`, 100)
  block.write('0000000\0'.repeat(2), 108)
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  block.write(`${(1_700_000_000).toString(8).padStart(11, '0')}\0`, 136)
  block.write(' '.repeat(8), 148)
  block.write(entry.type ?? '0', 156)
  block.write(entry.target ?? '', 157, 100, 'utf8')
  block.write('ustar\x0000', 257)
  const devices = entry.type === '3' || entry.type === '4' ? '0000001\0'.repeat(2) : '0000000\0'.repeat(2)
  block.write(devices, 329)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

export function tarOf(entries: readonly TarEntry[]): Uint8Array {
  const parts: Buffer[] = []
  for (const entry of entries) {
    parts.push(header(entry))
    if (entry.content === undefined) continue
    parts.push(Buffer.from(entry.content), Buffer.alloc((BLOCK - (entry.content.byteLength % BLOCK)) % BLOCK))
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}
