/** C9: an installation that was stopped starts again: from the command to the first sandbox that is ready. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SERIES = 'C9 start'
const ROUNDS = 2

async function start(bench: Bench): Promise<Sandbox> {
  const { code, stderr } = await bench.installation.launcher(['up', '--detach'])
  if (code !== 0) throw new Error(`up --detach ended with ${code}: ${stderr}`)
  return Sandbox.create({ client: bench.client })
}

async function measure(bench: Bench): Promise<Finding[]> {
  for (let round = 0; round < bench.count(ROUNDS); round += 1) {
    bench.signal.throwIfAborted()
    await bench.installation.ok(['down'])
    let sandbox: Sandbox | undefined
    const ms = await timed(async () => {
      sandbox = await start(bench)
    })
    bench.samples.add(SERIES, 'ours', ms / 1_000, 's')
    if (sandbox !== undefined) await bench.freshness.prove(sandbox)
    await sandbox?.delete()
  }
  return [
    {
      id: 'C9',
      metric: 'second start to the first ready sandbox',
      unit: 's',
      value: median(bench.samples.of(SERIES, 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtMost(10, 's'),
      aim: valueAtMost(4, 's'),
    },
  ]
}

export const secondStart: Family = { ids: ['C9'], setting: 'no pool', measure }
