/**
 * S8: a hundred creates at once with a pool of twenty. What does not fit the pool is started cold, as many at once as the host allows: nobody
 * may wait longer than the cold starts before him take. The raw runtime, as many in flight, says how many starts this machine has in it.
 */
import { LIMITS } from '@sandglass/contract/limits'
import type { Resources } from '@sandglass/contract/sandbox'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { firstOutput } from '../installation/first-output.ts'
import { poolIsFull } from '../installation/pool.ts'
import { POOLS } from '../installation/settings.ts'
import { asOptions } from '../installation/sizes.ts'
import { inFlight, timed } from '../measure/interleave.ts'
import { p99 } from '../measure/statistics.ts'
import { RawGvisor } from '../peers/raw-gvisor.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { burst, coldOf, gate } from './burst.ts'

const SETTING = 'pool of 20'
const COUNT = 100
const COLD_SAMPLES = 15
const RAW_STARTS = 32
const { size, allMembers } = POOLS[SETTING]
/** A pool is made for what is asked for three times. */
const ASKED_TWICE = 2

/** Of a size that no pool holds, a little larger than what the burst asks for. */
const unpooled = (index: number): Resources => ({ ...size, memory_mb: size.memory_mb + 1 + Math.floor(index / ASKED_TWICE) })

/** One after another, none from a pool. */
async function coldStarts(bench: Bench): Promise<void> {
  for (let index = 0; index < bench.count(COLD_SAMPLES); index += 1) {
    bench.signal.throwIfAborted()
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(unpooled(index)) })
    if (path !== 'claimed') bench.samples.add('S8 tti cold', 'ours', ms, 'ms')
    await sandbox.delete()
  }
}

/** Starts per second of the raw runtime. */
async function rawRate(bench: Bench): Promise<number> {
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const prepared = await inFlight(
    LIMITS.hostStartsInFlight,
    Array.from({ length: bench.count(RAW_STARTS) }, () => () => raw.prepare(size)),
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
  const raw = await rawRate(bench)
  const pool = await poolIsFull(bench.installation, allMembers, 0)
  const result = await burst(bench, count, size)
  for (const { ms } of result.started) bench.samples.add('S8 tti in a burst', 'ours', ms, 'ms')
  const cold = coldOf(result)
  bench.note(
    'S8',
    `${cold} of ${result.started.length} starts were cold; ${(cold / (result.ms / 1_000)).toFixed(1)} cold starts/s against ${raw.toFixed(1)} of raw runsc`,
  )
  return [
    {
      id: 'S8',
      metric: `burst of ${count}, pool of 20, p99`,
      unit: 'ms',
      value: result.started.length === 0 ? null : p99(result.started.map(({ ms }) => ms)),
      peer: `own cold p99 × ${count}/${LIMITS.hostStartsInFlight}`,
      peerValue: (p99(bench.samples.of('S8 tti cold', 'ours')) * count) / LIMITS.hostStartsInFlight,
      must: ratioAtMost(1),
      aim: ratioAtMost(1),
      void: result.failures.length > 0 ? `${result.failures.length} failed` : pool ? undefined : 'no pool was there',
    },
    await gate(bench, 'S8', result, allMembers),
  ]
}

export const burstCold: Family = { ids: ['S8'], setting: SETTING, measure }
