/** Bytes: joining, comparing, hashing, and making the same random ones again. */
import { createHash } from 'node:crypto'

const encoder = new TextEncoder()

export const utf8 = (text: string): Uint8Array => encoder.encode(text)
export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

/** Hashes a stream without keeping it. */
export async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<{ size: number; sha256: string }> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    size += chunk.byteLength
  }
  return { size, sha256: hash.digest('hex') }
}

/** Bytes that look random and are the same for the same seed (xorshift32). */
export function patterned(size: number, seed: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(size / 4))
  let state = seed | 1
  for (let index = 0; index < words.length; index += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[index] = state
  }
  return new Uint8Array(words.buffer, 0, size)
}

/** A stream of `size` bytes that repeats one random mebibyte, so that gigabytes cost no memory. */
export async function* patternedStream(size: number, seed: number): AsyncGenerator<Uint8Array> {
  const block = patterned(Math.min(size, 1024 * 1024), seed)
  for (let sent = 0; sent < size; sent += block.byteLength) yield block.subarray(0, Math.min(block.byteLength, size - sent))
}
