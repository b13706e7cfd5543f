/**
 * S1, S3: create to first output from a warm pool, and its tail. The pool is full before each sample; what a pool does while it is being
 * refilled is S8's and S9's question.
 */
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { firstOutput } from '../installation/first-output.ts'
import { poolIsFull } from '../installation/pool.ts'
import { POOLS } from '../installation/settings.ts'
import { asOptions } from '../installation/sizes.ts'
import { interleave } from '../measure/interleave.ts'
import { median, p99 } from '../measure/statistics.ts'
import { RawGvisor } from '../peers/raw-gvisor.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { RAW_START, rawFirstOutput } from './start-cold.ts'

const SETTING = 'pool of 20'
const SERIES = 'S1 tti warm'
const ROUNDS = 20
const OURS_A_ROUND = 5
const { size, allMembers } = POOLS[SETTING]

async function measure(bench: Bench): Promise<Finding[]> {
  let cold = 0
  let pool = await poolIsFull(bench.installation, allMembers, 0)
  const ours = async (keep: boolean): Promise<void> => {
    if (pool) pool = await poolIsFull(bench.installation, allMembers, 0)
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(size) })
    if (path !== 'claimed') cold += 1
    if (keep) bench.samples.add(SERIES, 'ours', ms, 'ms')
    await bench.freshness.prove(sandbox)
    await sandbox.delete()
  }
  await ours(false)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  await interleave(
    bench.count(ROUNDS),
    [
      { each: bench.count(OURS_A_ROUND), sample: ours },
      { each: 1, sample: (keep) => rawFirstOutput(bench, raw, SERIES, keep) },
    ],
    bench.signal,
  )
  const warm = bench.samples.of(SERIES, 'ours')
  const reason = cold === 0 ? undefined : `${pool ? '' : 'no pool was there: '}${cold} of ${warm.length + 2} starts were cold`
  return [
    {
      id: 'S1',
      metric: 'create to first output, warm, p50',
      unit: 'ms',
      value: median(warm),
      peer: RAW_START,
      peerValue: median(bench.samples.of(SERIES, 'peer')),
      must: ratioAtMost(1 / 6),
      aim: ratioAtMost(1 / 12),
      void: reason,
    },
    {
      id: 'S3',
      metric: 'create to first output, warm, p99',
      unit: 'ms',
      value: p99(warm),
      peer: 'own p50',
      peerValue: median(warm),
      must: ratioAtMost(4),
      aim: ratioAtMost(2.5),
      void: reason,
    },
  ]
}

export const startWarm: Family = { ids: ['S1', 'S3'], setting: SETTING, measure }
