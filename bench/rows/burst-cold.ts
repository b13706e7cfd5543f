/**
 * S8: a hundred creates at once with a pool of twenty. What does not fit the pool is started cold, as many at once as the host allows: nobody
 * may wait longer than the cold starts before him take. The raw runtime, as many in flight, says how many starts this machine has in it.
 */
import { LIMITS } from '@sandglass/contract/limits'
import type { Resources } from '@sandglass/contract/sandbox'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { firstOutput } from '../installation/first-output.ts'
import { fullPool } from '../installation/pool.ts'
import { MEMBERS } from '../installation/settings.ts'
import { asOptions, DEFAULT_SIZE } from '../installation/sizes.ts'
import { inFlight, timed } from '../measure/interleave.ts'
import { median, p99 } from '../measure/statistics.ts'
import { RawGvisor } from '../peers/raw-gvisor.ts'
import { ratioAtLeast, ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { burst, coldOf, gate, voidBehind } from './burst.ts'

const SETTING = 'pool of 20'
const COLD = 'S8 tti cold'
const IN_BURST = 'S8 tti in a burst'
const RATE = 'S8 cold starts'
const COUNT = 100
const COLD_SAMPLES = 20
const RAW_STARTS = 40
/** A pool is made for what is asked for three times. */
const ASKED_TWICE = 2

/** Of a size that no pool holds, a little larger than what the burst asks for. */
const unpooled = (index: number): Resources => ({ ...DEFAULT_SIZE, memory_mb: DEFAULT_SIZE.memory_mb + 1 + Math.floor(index / ASKED_TWICE) })

/** One after another. @throws Error when one came from a pool */
async function coldStarts(bench: Bench): Promise<void> {
  for (let index = 0; index < bench.count(COLD_SAMPLES); index += 1) {
    bench.signal.throwIfAborted()
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(unpooled(index)) })
    if (path === 'claimed') throw new Error(`a start that was to be cold came from a pool: ${sandbox.id}`)
    bench.samples.add(COLD, 'ours', ms, 'ms')
    await bench.freshness.prove(sandbox)
    await sandbox.delete()
  }
}

/** Starts per second of the raw runtime, beside the same pool that ours has. */
async function rawRate(bench: Bench): Promise<number> {
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const prepared = await inFlight(
    LIMITS.hostStartsInFlight,
    Array.from({ length: bench.count(RAW_STARTS) }, () => () => raw.prepare(DEFAULT_SIZE)),
  )
  const ms = await timed(() =>
    inFlight(
      LIMITS.hostStartsInFlight,
      prepared.map((peer) => () => raw.start(peer, bench.signal)),
    ),
  )
  return prepared.length / (ms / 1_000)
}

async function measure(bench: Bench): Promise<Finding[]> {
  const count = bench.count(COUNT)
  await coldStarts(bench)
  await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
  await bench.atRest()
  const raw = await rawRate(bench)
  await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
  await bench.atRest()
  const result = await burst(bench, count, DEFAULT_SIZE)
  for (const { ms } of result.started) bench.samples.add(IN_BURST, 'ours', ms, 'ms')
  const cold = coldOf(result)
  const rate = cold / (result.ms / 1_000)
  bench.samples.add(RATE, 'ours', rate, '/s')
  bench.samples.add(RATE, 'peer', raw, '/s')
  const alone = bench.samples.of(COLD, 'ours')
  const told = `${cold} of ${result.started.length} starts were cold, the last output after ${result.ms.toFixed(0)} ms; one cold start alone p50 ${median(alone).toFixed(0)} ms, p99 ${p99(alone).toFixed(0)} ms`
  bench.note('S8', told)
  const gated = await gate(bench, 'S8', result, MEMBERS[SETTING])
  const reason = result.failures.length > 0 ? `${result.failures.length} failed` : voidBehind(gated)
  return [
    {
      id: 'S8',
      metric: `burst of ${count}, pool of ${MEMBERS[SETTING]}, p99`,
      unit: 'ms',
      value: result.started.length === 0 ? null : p99(result.started.map(({ ms }) => ms)),
      peer: `own cold p99 × ${count}/${LIMITS.hostStartsInFlight}`,
      peerValue: (p99(alone) * count) / LIMITS.hostStartsInFlight,
      must: ratioAtMost(1),
      aim: null,
      void: reason,
    },
    {
      id: 'S8',
      metric: 'cold starts in it',
      unit: '/s',
      value: cold === 0 ? null : rate,
      peer: `runsc run --detach ×${bench.count(RAW_STARTS)}, ${LIMITS.hostStartsInFlight} in flight`,
      peerValue: raw,
      must: null,
      aim: ratioAtLeast(0.9),
      void: reason,
    },
    gated,
  ]
}

export const burstCold: Family = { ids: ['S8'], setting: SETTING, measure }
