/** Bytes that look random and are the same for the same seed. */
import { createHash } from 'node:crypto'
import type { RandomBytes } from '@sandglass/contract'

export function seededBytes(seed: number): RandomBytes {
  let blocks = 0
  let rest: Buffer = Buffer.alloc(0)
  return (size) => {
    while (rest.length < size) {
      rest = Buffer.concat([rest, createHash('sha256').update(`${seed} ${blocks}`).digest()])
      blocks += 1
    }
    const bytes = rest.subarray(0, size)
    rest = rest.subarray(size)
    return bytes
  }
}
