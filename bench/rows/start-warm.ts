/**
 * S1, S3: create to first output from a warm pool, and its tail. The pool is full before each sample; what a pool does while it is being
 * refilled is S8's and S9's question.
 */
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { firstOutput } from '../installation/first-output.ts'
import { fullPool } from '../installation/pool.ts'
import { MEMBERS } from '../installation/settings.ts'
import { asOptions, DEFAULT_SIZE } from '../installation/sizes.ts'
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

async function measure(bench: Bench): Promise<Finding[]> {
  let cold = 0
  const ours = async (keep: boolean): Promise<void> => {
    await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(DEFAULT_SIZE) })
    if (path !== 'claimed') cold += 1
    if (keep) bench.samples.add(SERIES, 'ours', ms, 'ms')
    await bench.freshness.prove(sandbox)
    await sandbox.delete()
  }
  await ours(false)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const theirs = async (keep: boolean): Promise<void> => {
    // What ours has just taken is replaced first, or the peer would be measured beside it.
    await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
    await rawFirstOutput(bench, raw, SERIES, keep)
  }
  await interleave(
    bench.count(ROUNDS),
    [
      { each: bench.count(OURS_A_ROUND), sample: ours },
      { each: 1, sample: theirs },
    ],
    bench.signal,
  )
  const warm = bench.samples.of(SERIES, 'ours')
  const reason = cold === 0 ? undefined : `${cold} starts from a full pool were cold`
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
