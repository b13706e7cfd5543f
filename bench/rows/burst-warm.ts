/**
 * S7: a hundred creates at once from a pool that holds a hundred, against a hundred `runc run`, eight in flight. Either side begins when the pool
 * is whole and nothing else runs: what refilling costs is nobody's share of the peer's time.
 */
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { endAll } from '../installation/crash-gate.ts'
import { BOOT_ID_COMMAND } from '../installation/freshness.ts'
import { fullPool } from '../installation/pool.ts'
import { MEMBERS } from '../installation/settings.ts'
import { DEFAULT_SIZE } from '../installation/sizes.ts'
import { inFlight, timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawRunc } from '../peers/raw-runc.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { type Burst, burst, coldOf, gate, sandboxesOf, voidBehind } from './burst.ts'

const SETTING = 'pool of 100'
const SERIES = 'S7 burst'
const COUNT = 100
const ROUNDS = 3
const PEER_IN_FLIGHT = 8

async function peerBurst(bench: Bench, runc: RawRunc, count: number): Promise<void> {
  const containers = await inFlight(
    PEER_IN_FLIGHT,
    Array.from({ length: count }, () => () => runc.prepare(DEFAULT_SIZE, BOOT_ID_COMMAND)),
  )
  const ms = await timed(() =>
    inFlight(
      PEER_IN_FLIGHT,
      containers.map((container) => () => runc.run(container)),
    ),
  )
  bench.samples.add(SERIES, 'peer', ms, 'ms')
  await inFlight(
    PEER_IN_FLIGHT,
    containers.map((container) => () => runc.end(container)),
  )
}

async function ourBurst(bench: Bench, count: number): Promise<Burst> {
  await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
  await bench.atRest()
  const result = await burst(bench, count, DEFAULT_SIZE)
  bench.samples.add(SERIES, 'ours', result.ms, 'ms')
  for (const { ms } of result.started) bench.samples.add('S7 tti in a burst', 'ours', ms, 'ms')
  return result
}

/** Why the bursts are no burst from a pool. */
function reasonOf(bursts: readonly Burst[]): string | undefined {
  const sum = (of: (one: Burst) => number): number => bursts.reduce((total, one) => total + of(one), 0)
  const [cold, failed, all] = [sum(coldOf), sum(({ failures }) => failures.length), sum(({ started, failures }) => started.length + failures.length)]
  return cold === 0 && failed === 0 ? undefined : `${cold} of ${all} starts were cold, ${failed} failed`
}

async function measure(bench: Bench): Promise<Finding[]> {
  const count = bench.count(COUNT)
  const rounds = bench.count(ROUNDS)
  await using runc = await RawRunc.open({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const bursts: Burst[] = []
  for (let round = 0; round < rounds; round += 1) {
    const before = bursts.at(-1)
    if (before !== undefined) for (const line of await endAll(bench.installation, sandboxesOf(before), MEMBERS[SETTING])) bench.note('S7', line)
    await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
    await bench.atRest()
    await peerBurst(bench, runc, count)
    bursts.push(await ourBurst(bench, count))
  }
  const last = bursts.at(-1)
  if (last === undefined) return []
  const gated = await gate(bench, 'S7', last, MEMBERS[SETTING])
  return [
    {
      id: 'S7',
      metric: `burst of ${count} from a pool, time to the last output`,
      unit: 'ms',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: `runc run ×${count}, ${PEER_IN_FLIGHT} in flight`,
      peerValue: median(bench.samples.of(SERIES, 'peer')),
      must: ratioAtMost(1 / 3),
      aim: ratioAtMost(1 / 8),
      void: reasonOf(bursts) ?? voidBehind(gated),
    },
    gated,
  ]
}

export const burstWarm: Family = { ids: ['S7'], setting: SETTING, measure }
