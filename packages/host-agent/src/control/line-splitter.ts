/** Splits a stream of bytes into lines of bounded length. */
import { CodedError, LIMITS } from '@sandglass/contract'

const NEWLINE = 0x0a

/** @throws CodedError `body_too_large` when a line does not end */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let newline = rest.indexOf(NEWLINE); newline !== -1; newline = rest.indexOf(NEWLINE)) {
      parts.push(rest.subarray(0, newline))
      yield Buffer.concat(parts).toString('utf8')
      parts = []
      size = 0
      rest = rest.subarray(newline + 1)
    }
    size += rest.byteLength
    // The spec is JSON within JSON: quoting may double it.
    if (size > LIMITS.hostWatchLineBytes * 2) throw new CodedError('body_too_large', 'A line of the watch is too long.')
    if (rest.byteLength > 0) parts.push(rest)
  }
}
