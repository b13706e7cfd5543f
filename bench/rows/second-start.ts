/** C9: an installation that was stopped starts again: from the command to the first sandbox that is ready, with the pool that it comes with. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { fullPool } from '../installation/pool.ts'
import { MEMBERS } from '../installation/settings.ts'
import { timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SETTING = 'as installed'
const SERIES = 'C9 start'
const OF_UP = 'C9 up'
const ROUNDS = 5

async function up({ installation }: Bench): Promise<void> {
  const { code, stderr } = await installation.launcher(['up', '--detach'])
  if (code !== 0) throw new Error(`up --detach ended with ${code}: ${stderr}`)
}

async function round(bench: Bench): Promise<void> {
  bench.signal.throwIfAborted()
  await bench.installation.ok(['down'])
  const began = performance.now()
  bench.samples.add(OF_UP, 'ours', (await timed(() => up(bench))) / 1_000, 's')
  await using sandbox = await Sandbox.create({ client: bench.client })
  bench.samples.add(SERIES, 'ours', (performance.now() - began) / 1_000, 's')
  await bench.freshness.prove(sandbox)
}

async function measure(bench: Bench): Promise<Finding[]> {
  for (let index = 0; index < bench.count(ROUNDS); index += 1) {
    await round(bench)
    await fullPool(bench.installation, MEMBERS[SETTING], bench.signal)
  }
  bench.note('C9', `of it ${median(bench.samples.of(OF_UP, 'ours')).toFixed(2)} s until up --detach has ended`)
  return [
    {
      id: 'C9',
      metric: 'second start to the first ready sandbox, p50',
      unit: 's',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtMost(10, 's'),
      aim: valueAtMost(4, 's'),
    },
  ]
}

export const secondStart: Family = { ids: ['C9'], setting: SETTING, measure }
