/** S9: a hundred creates, one each 200 ms, with a pool of twenty: the pool must keep up without being felt. */
import type { Bench, Family } from '../bench.ts'
import { endAll } from '../installation/crash-gate.ts'
import { firstOutput } from '../installation/first-output.ts'
import { fullPool } from '../installation/pool.ts'
import { MEMBERS } from '../installation/settings.ts'
import { asOptions, DEFAULT_SIZE } from '../installation/sizes.ts'
import { median, p99 } from '../measure/statistics.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { burst, coldOf, sandboxesOf } from './burst.ts'

const SETTING = 'pool of 20'
const ALONE = 'S9 tti alone'
const STAGGERED = 'S9 tti staggered'
const COUNT = 100
const GAP_MS = 200
/** Before the creates, and as many behind them. */
const WARM_SAMPLES = 12

/** What a start takes when nothing else goes on. @throws Error when one was cold */
async function warmStarts(bench: Bench): Promise<void> {
  for (let index = 0; index < bench.count(WARM_SAMPLES); index += 1) {
    await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(DEFAULT_SIZE) })
    if (path !== 'claimed') throw new Error(`a start from a full pool was cold: ${sandbox.id}`)
    bench.samples.add(ALONE, 'ours', ms, 'ms')
    await bench.freshness.prove(sandbox)
    await sandbox.delete()
  }
}

async function measure(bench: Bench): Promise<Finding[]> {
  const count = bench.count(COUNT)
  await warmStarts(bench)
  await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
  await bench.atRest()
  const result = await burst(bench, count, DEFAULT_SIZE, GAP_MS)
  const times = result.started.map(({ ms }) => ms)
  for (const ms of times) bench.samples.add(STAGGERED, 'ours', ms, 'ms')
  const left = await endAll(bench.installation, sandboxesOf(result), MEMBERS[SETTING])
  for (const line of [...result.failures, ...left].slice(0, 10)) bench.note('S9', line)
  await warmStarts(bench)
  if (times.length > 0) bench.note('S9', `${coldOf(result)} of ${times.length} starts were cold; p50 ${median(times).toFixed(0)} ms`)
  return [
    {
      id: 'S9',
      metric: `${count} creates, one each ${GAP_MS} ms, pool of ${MEMBERS[SETTING]}, p99`,
      unit: 'ms',
      value: times.length === 0 ? null : p99(times),
      peer: 'own warm p50',
      peerValue: median(bench.samples.of(ALONE, 'ours')),
      must: ratioAtMost(3),
      aim: ratioAtMost(2),
      void: result.failures.length > 0 ? `${result.failures.length} failed` : left.length > 0 ? `${left.length} things were left` : undefined,
    },
  ]
}

export const staggered: Family = { ids: ['S9'], setting: SETTING, measure }
