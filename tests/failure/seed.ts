/** Chance that can be had again: one seed names a whole run, and each part of it draws from a stream of its own. */

export type Random = {
  /** 0 ≤ x < 1 */
  next(): number
  /** 0 ≤ x < below */
  integer(below: number): number
  chance(probability: number): boolean
  bytes(size: number): Uint8Array<ArrayBuffer>
}

/** FNV-1a, so that a name gives a stream. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) state = Math.imul(state ^ text.charCodeAt(index), 0x01000193)
  return state >>> 0
}

/** @param name everything that the stream depends on, the seed first */
export function randomOf(...name: readonly (string | number)[]): Random {
  let state = hash(name.join('/'))
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const integer = (below: number): number => Math.floor(next() * below)
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    bytes: (size) => Uint8Array.from({ length: size }, () => integer(256)),
  }
}
