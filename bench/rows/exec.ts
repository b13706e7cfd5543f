/** E2: the round trip of a command through the public API, against `runsc exec` of the same command in the same kind of sandbox. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { asOptions, ROOMY } from '../installation/sizes.ts'
import { interleave, timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawGvisor } from '../peers/raw-gvisor.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SERIES = 'E2 exec'
const COMMAND = ['/bin/true']
const ROUNDS = 40
const OURS_A_ROUND = 5

async function measure(bench: Bench): Promise<Finding[]> {
  await using sandbox = await Sandbox.create({ client: bench.client, resources: asOptions(ROOMY), ttlSeconds: 1_800 })
  await bench.freshness.prove(sandbox)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const peer = await raw.prepare(ROOMY)
  await raw.start(peer, bench.signal)
  const ours = async (keep: boolean): Promise<void> => {
    const ms = await timed(() => sandbox.exec(COMMAND, { check: true }))
    if (keep) bench.samples.add(SERIES, 'ours', ms, 'ms')
  }
  const theirs = async (keep: boolean): Promise<void> => {
    const ms = await timed(() => raw.exec(peer, COMMAND))
    if (keep) bench.samples.add(SERIES, 'peer', ms, 'ms')
  }
  await interleave(
    bench.count(ROUNDS),
    [
      { each: bench.count(OURS_A_ROUND), sample: ours },
      { each: 1, sample: theirs },
    ],
    bench.signal,
  )
  return [
    {
      id: 'E2',
      metric: 'exec round trip, p50',
      unit: 'ms',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: 'runsc exec',
      peerValue: median(bench.samples.of(SERIES, 'peer')),
      must: ratioAtMost(1 / 3),
      aim: ratioAtMost(1 / 5),
    },
  ]
}

export const exec: Family = { ids: ['E2'], setting: 'no pool', measure }
