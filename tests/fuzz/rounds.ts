/**
 * Rounds of chance for as long as there is time, each from a stream of its own, so that a failing one can be had again alone:
 *
 *   SANDGLASS_FUZZ_SEED=… SANDGLASS_FUZZ_ROUND=17 ./sandglass test fuzz/names
 *
 * SANDGLASS_FUZZ_SECONDS says how long each fuzzer runs.
 */
import { randomBytes } from 'node:crypto'
import { type Random, randomOf } from '../failure/seed.ts'

const SECONDS_DEFAULT = 20

export const SEED = process.env['SANDGLASS_FUZZ_SEED'] ?? randomBytes(4).toString('hex')

export function wholeNumber(name: string): number | undefined {
  const text = process.env[name]
  if (text === undefined || text === '') return undefined
  if (!/^[0-9]{1,7}$/.test(text)) throw new TypeError(`${name} is not a number: ${text}`)
  return Number(text)
}

export const seconds = (): number => wholeNumber('SANDGLASS_FUZZ_SECONDS') ?? SECONDS_DEFAULT

/** @throws Error naming seed and round, its cause is what the round threw */
export async function rounds(name: string, round: (random: Random, index: number) => Promise<void>): Promise<void> {
  const only = wholeNumber('SANDGLASS_FUZZ_ROUND')
  const endsAt = performance.now() + seconds() * 1_000
  let index = only ?? 0
  do {
    try {
      await round(randomOf(SEED, name, index), index)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`${reason}\nonce more: SANDGLASS_FUZZ_SEED=${SEED} SANDGLASS_FUZZ_ROUND=${index} ./sandglass test fuzz/${name}`, { cause })
    }
    index += 1
  } while (only === undefined && performance.now() < endsAt)
  process.stdout.write(`    ${name}: ${only === undefined ? index : 1} rounds, seed ${SEED}\n`)
}

export function pick<T>(random: Random, all: readonly T[]): T {
  const one = all[random.integer(all.length)]
  if (one === undefined) throw new Error('nothing to pick from')
  return one
}

/** A few changes of a sample: bytes turned, cut out, put in, doubled; now and then noise alone. */
export function mutated(random: Random, samples: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  if (random.chance(0.08)) return random.bytes(random.integer(600))
  let bytes = Buffer.from(pick(random, samples))
  for (let change = random.integer(4); change > 0; change -= 1) {
    const at = random.integer(bytes.byteLength + 1)
    const kind = random.integer(5)
    if (kind === 0) bytes = bytes.subarray(0, at)
    else if (kind === 1) bytes = Buffer.concat([bytes.subarray(0, at), random.bytes(random.integer(24)), bytes.subarray(at)])
    else if (kind === 2) bytes = Buffer.concat([bytes, pick(random, samples)])
    else if (at < bytes.byteLength) bytes[at] = kind === 3 ? random.integer(256) : (bytes[at] ?? 0) ^ (1 << random.integer(8))
  }
  return new Uint8Array(bytes)
}

/** The same bytes in pieces of random sizes. */
export function* pieces(random: Random, bytes: Uint8Array): Generator<Uint8Array> {
  const most = pick(random, [1, 7, 300, 5_000, 1_000_000])
  for (let at = 0; at < bytes.byteLength; ) {
    const size = 1 + random.integer(most)
    yield bytes.subarray(at, at + size)
    at += size
  }
}
