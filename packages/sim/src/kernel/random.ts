/** Chance from a seed (sfc32): the same numbers on every machine. A stream can be split, so that what one part draws does not move another's numbers. */
export class Random {
  #a: number
  #b: number
  #c: number
  #count = 1

  constructor(seed: number, stream = 0) {
    this.#a = seed >>> 0
    this.#b = (seed / 0x1_0000_0000) >>> 0
    this.#c = stream >>> 0
    for (let turn = 0; turn < 15; turn += 1) this.next()
  }

  /** In [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#count) >>> 0
    this.#count = (this.#count + 1) >>> 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) >>> 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) >>> 0
    return sum / 0x1_0000_0000
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability
  }

  /** In [from, to). */
  between(from: number, to: number): number {
    return from + this.next() * (to - from)
  }

  /** A whole number in [from, to]. */
  integer(from: number, to: number): number {
    return Math.floor(this.between(from, to + 1))
  }

  /** @throws RangeError of an empty list */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError('nothing to pick from')
    // An element may be undefined itself.
    return list[Math.floor(this.next() * list.length)] as T
  }

  bytes(size: number): Buffer {
    return Buffer.from(Array.from({ length: size }, () => this.integer(0, 255)))
  }

  split(): Random {
    return new Random(this.integer(0, 0xffff_ffff), this.integer(0, 0xffff_ffff))
  }
}
