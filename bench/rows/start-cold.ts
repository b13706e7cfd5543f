/** S4: create to first output with no pool, against `runsc run --detach` and `runsc exec` of the same sandbox by hand. */
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { firstOutput } from '../installation/first-output.ts'
import { BOOT_ID_COMMAND } from '../installation/freshness.ts'
import { asOptions, DEFAULT_SIZE } from '../installation/sizes.ts'
import { interleave } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawGvisor } from '../peers/raw-gvisor.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SERIES = 'S4 tti cold'
const ROUNDS = 25
export const RAW_START = 'runsc run --detach + runsc exec'

/** One start by hand. What is prepared before the runtime is called does not count. */
export async function rawFirstOutput(bench: Bench, raw: RawGvisor, series: string, keep: boolean): Promise<void> {
  const peer = await raw.prepare(DEFAULT_SIZE)
  try {
    const began = performance.now()
    await raw.start(peer, bench.signal)
    const bootId = await raw.exec(peer, BOOT_ID_COMMAND)
    const ms = performance.now() - began
    bench.freshness.told(peer.name, bootId)
    if (keep) bench.samples.add(series, 'peer', ms, 'ms')
  } finally {
    await raw.end(peer)
  }
}

async function measure(bench: Bench): Promise<Finding[]> {
  let claimed = 0
  const ours = async (keep: boolean): Promise<void> => {
    const { sandbox, ms, path } = await firstOutput(bench, { resources: asOptions(DEFAULT_SIZE) })
    if (path === 'claimed') claimed += 1
    if (keep) bench.samples.add(SERIES, 'ours', ms, 'ms')
    await bench.freshness.prove(sandbox)
    await sandbox.delete()
  }
  // The first one mounts the template, which the peer then shares.
  await ours(false)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  await interleave(
    bench.count(ROUNDS),
    [
      { each: 1, sample: ours },
      { each: 1, sample: (keep) => rawFirstOutput(bench, raw, SERIES, keep) },
    ],
    bench.signal,
  )
  return [
    {
      id: 'S4',
      metric: 'create to first output, cold, p50',
      unit: 'ms',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: RAW_START,
      peerValue: median(bench.samples.of(SERIES, 'peer')),
      must: ratioAtMost(1.15),
      aim: ratioAtMost(0.9),
      void: claimed === 0 ? undefined : `${claimed} starts came from a pool`,
    },
  ]
}

export const startCold: Family = { ids: ['S4'], setting: 'no pool', measure }
