/** S7: a hundred creates at once from a pool that holds a hundred, against a hundred `runc run`, eight in flight. */
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { endAll } from '../installation/crash-gate.ts'
import { BOOT_ID_COMMAND } from '../installation/freshness.ts'
import { poolIsFull } from '../installation/pool.ts'
import { POOLS } from '../installation/settings.ts'
import { inFlight, timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawRunc } from '../peers/raw-runc.ts'
import { ratioAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import { type Burst, burst, coldOf, gate, sandboxesOf } from './burst.ts'

const SETTING = 'pool of 100'
const SERIES = 'S7 burst'
const COUNT = 100
const ROUNDS = 2
const PEER_IN_FLIGHT = 8
const { size, allMembers } = POOLS[SETTING]

async function peerBurst(bench: Bench, runc: RawRunc, count: number): Promise<void> {
  const containers = await inFlight(
    PEER_IN_FLIGHT,
    Array.from({ length: count }, () => () => runc.prepare(size, BOOT_ID_COMMAND)),
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

async function measure(bench: Bench): Promise<Finding[]> {
  const count = bench.count(COUNT)
  const rounds = bench.count(ROUNDS)
  await using runc = await RawRunc.open({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  let cold = 0
  let last: Burst | undefined
  for (let round = 0; round < rounds; round += 1) {
    bench.signal.throwIfAborted()
    if (last !== undefined) for (const line of await endAll(bench.installation, sandboxesOf(last), allMembers)) bench.note('S7', line)
    await poolIsFull(bench.installation, allMembers, 0)
    last = await burst(bench, count, size)
    cold += coldOf(last)
    bench.samples.add(SERIES, 'ours', last.ms, 'ms')
    for (const { ms } of last.started) bench.samples.add('S7 tti in a burst', 'ours', ms, 'ms')
    await peerBurst(bench, runc, count)
  }
  if (last === undefined) return []
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
      void: cold === 0 && last.failures.length === 0 ? undefined : `${cold} of ${count * rounds} starts were cold, ${last.failures.length} failed`,
    },
    await gate(bench, 'S7', last, allMembers),
  ]
}

export const burstWarm: Family = { ids: ['S7'], setting: SETTING, measure }
