/** E3: a thousand commands over eight sandboxes, sixteen in flight, against `runc exec` in the same shape. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { asOptions, DEFAULT_SIZE } from '../installation/sizes.ts'
import { inFlight, interleave, timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawRunc } from '../peers/raw-runc.ts'
import { ratioAtLeast } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SERIES = 'E3 rate'
const COMMAND = ['/bin/true']
const SANDBOXES = 8
const IN_FLIGHT = 16
const ROUNDS = 4
const EXECS_A_ROUND = 250
/** As long as a round of ours or longer, on any machine. */
const PEER_EXECS_A_ROUND = 100
/** A quota would be what is measured. */
const SIZE = { ...DEFAULT_SIZE, vcpu: 2 }

async function rate(count: number, exec: (index: number) => Promise<unknown>): Promise<number> {
  const tasks = Array.from({ length: count }, (_, index) => () => exec(index))
  return count / ((await timed(() => inFlight(IN_FLIGHT, tasks))) / 1_000)
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length]
  if (item === undefined) throw new RangeError('nothing to choose from')
  return item
}

async function measure(bench: Bench): Promise<Finding[]> {
  await using stack = new AsyncDisposableStack()
  const sandboxes: Sandbox[] = []
  for (let index = 0; index < SANDBOXES; index += 1) {
    const sandbox = stack.use(await Sandbox.create({ client: bench.client, resources: asOptions(SIZE), ttlSeconds: 1_800 }))
    await bench.freshness.prove(sandbox)
    sandboxes.push(sandbox)
  }
  await using runc = await RawRunc.open({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const containers = await inFlight(
    2,
    Array.from({ length: SANDBOXES }, () => async () => {
      const container = await runc.prepare(SIZE, ['/bin/sleep', 'infinity'])
      await runc.start(container)
      return container
    }),
  )
  const ours = async (keep: boolean): Promise<void> => {
    const value = await rate(bench.count(EXECS_A_ROUND), (index) => at(sandboxes, index).exec(COMMAND, { check: true }))
    if (keep) bench.samples.add(SERIES, 'ours', value, '/s')
  }
  const theirs = async (keep: boolean): Promise<void> => {
    const value = await rate(bench.count(PEER_EXECS_A_ROUND), (index) => runc.exec(at(containers, index), COMMAND))
    if (keep) bench.samples.add(SERIES, 'peer', value, '/s')
  }
  await interleave(
    bench.count(ROUNDS),
    [
      { each: 1, sample: ours },
      { each: 1, sample: theirs },
    ],
    bench.signal,
  )
  return [
    {
      id: 'E3',
      metric: 'execs, 8 sandboxes, 16 in flight',
      unit: '/s',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: 'runc exec',
      peerValue: median(bench.samples.of(SERIES, 'peer')),
      must: ratioAtLeast(5),
      aim: ratioAtLeast(15),
    },
  ]
}

export const execMany: Family = { ids: ['E3'], setting: 'no pool', measure }
