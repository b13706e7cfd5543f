/** S9: a hundred creates, one each 200 ms, with a pool of twenty: the pool must keep up without being felt. */
import type { Bench, Family } from '../bench.ts'
import { endAll } from '../installation/crash-gate.ts'
import { firstOutput } from '../installation/first-output.ts'
import { poolIsFull } from '../installation/pool.ts'
import { POOLS } from '../installation/settings.ts'
import { asOptions } from '../installation/sizes.ts'
import { median, p99 } from '../measure/statistics.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { burst, coldOf, sandboxesOf } from './burst.ts'

const SETTING = 'pool of 20'
const COUNT = 100
const GAP_MS = 200
const WARM_SAMPLES = 15
const { size, allMembers } = POOLS[SETTING]

/** What a start takes when nothing else goes on. */
async function warmStarts(bench: Bench): Promise<void> {
  for (let index = 0; index < bench.count(WARM_SAMPLES); index += 1) {
    bench.signal.throwIfAborted()
    await poolIsFull(bench.installation, allMembers, 0)
    const { sandbox, ms } = await firstOutput(bench, { resources: asOptions(size) })
    bench.samples.add('S9 tti alone', 'ours', ms, 'ms')
    await sandbox.delete()
  }
}

async function measure(bench: Bench): Promise<Finding[]> {
  const count = bench.count(COUNT)
  const pool = await poolIsFull(bench.installation, allMembers, 0)
  if (pool) await warmStarts(bench)
  const result = await burst(bench, count, size, GAP_MS)
  for (const { ms } of result.started) bench.samples.add('S9 tti staggered', 'ours', ms, 'ms')
  for (const line of [...result.failures, ...(await endAll(bench.installation, sandboxesOf(result), allMembers))].slice(0, 10)) bench.note('S9', line)
  bench.note('S9', `${coldOf(result)} of ${result.started.length} starts were cold`)
  const alone = bench.samples.of('S9 tti alone', 'ours')
  return [
    {
      id: 'S9',
      metric: `${count} creates, one each ${GAP_MS} ms, pool of 20, p99`,
      unit: 'ms',
      value: result.started.length === 0 ? null : p99(result.started.map(({ ms }) => ms)),
      peer: 'own warm p50',
      peerValue: alone.length === 0 ? null : median(alone),
      must: ratioAtMost(3),
      aim: ratioAtMost(2),
      void: result.failures.length > 0 ? `${result.failures.length} failed` : pool ? undefined : 'no pool was there',
    },
  ]
}

export const staggered: Family = { ids: ['S9'], setting: SETTING, measure }
