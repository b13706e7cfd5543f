/** NDJSON from a guest: each line is checked, none is longer than a limit. */
import { CodedError, LIMITS, type Parser } from '@sandglass/contract'
import { parseGuestJson } from '../hosts/guest-client.ts'

const NEWLINE = 0x0a
/** A record holds a few paths, each at most three times as long when it is encoded. */
const LINE_BYTES = 16 * LIMITS.pathBytes

/** @throws CodedError `internal` when the guest breaks the protocol, and what its body throws */
export async function* jsonLines<T>(body: AsyncIterable<Uint8Array>, parser: Parser<T>): AsyncGenerator<T> {
  let rest: Uint8Array = new Uint8Array(0)
  for await (const chunk of body) {
    let data: Uint8Array = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE)) {
      if (end > 0) yield parseGuestJson(data.subarray(0, end), parser)
      data = data.subarray(end + 1)
    }
    if (data.byteLength > LINE_BYTES) throw new CodedError('internal', 'The sandbox sent a line that is too long.')
    rest = data
  }
  if (rest.byteLength > 0) throw new CodedError('internal', 'The sandbox stopped in the middle of a line.')
}
