/**
 * C1: durable creates through SDK and API on simulated hosts, each counted when it is ready. C4: the same beside a database that has a history: 800 hosts,
 * 25,000 live sandboxes and up to a million finished ones, in turns with an empty one.
 */
import { join } from 'node:path'
import { Sandbox } from '@sandglass/sdk'
import { type FleetRows, insertFinished, insertFleet, renewFleet } from '@sandglass/testkit'
import pg from 'pg'
import { inFlight } from '../measure/interleave.ts'
import { median, p99 } from '../measure/statistics.ts'
import { ratioAtMost, valueAtLeast } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import type { ControlBench, ControlFamily } from './control-bench.ts'
import { ControlPlaneProcess, TEMPLATE } from './control-plane-process.ts'

const ROUNDS = 5
const CREATES = 1_000
const IN_FLIGHT = 48
const WARM_UP = 200
const HOSTS = 8
const ROOM = { vcpu: 4_000, memory_mb: 8_000_000, disk_gb: 40_000 }
const MS_PER_SECOND = 1_000

/** Creates, then deletes what it made. @returns creates per second, each ready; failures throw */
async function creates(bench: ControlBench, { client }: ControlPlaneProcess, count: number, tti?: string): Promise<number> {
  const began = performance.now()
  const made = await inFlight(
    IN_FLIGHT,
    Array.from({ length: count }, () => async () => {
      bench.signal.throwIfAborted()
      const at = performance.now()
      const sandbox = await Sandbox.create({ client, isolation: 'fake' })
      if (tti !== undefined) bench.samples.add(tti, 'ours', performance.now() - at, 'ms')
      return sandbox
    }),
  )
  const perSecond = (count * MS_PER_SECOND) / (performance.now() - began)
  const ids = new Set(made.map(({ id }) => id))
  if (ids.size !== count) throw new Error(`${count} creates made ${ids.size} sandboxes`)
  await inFlight(
    IN_FLIGHT,
    made.map((sandbox) => () => sandbox.delete()),
  )
  return perSecond
}

async function measureCreates(bench: ControlBench): Promise<Finding[]> {
  await using controlPlane = await ControlPlaneProcess.start(await bench.postgres.createDatabase(), join(bench.scratch, 'c1'))
  await controlPlane.simulateHosts(HOSTS, ROOM)
  await creates(bench, controlPlane, bench.count(WARM_UP))
  for (let round = 0; round < bench.count(ROUNDS); round += 1) {
    await bench.atRest()
    bench.samples.add('C1 creates', 'ours', await creates(bench, controlPlane, bench.count(CREATES), 'C1 create'), '/s')
  }
  const each = bench.samples.of('C1 create', 'ours')
  bench.note('C1', `${IN_FLIGHT} in flight, ${HOSTS} simulated hosts; a create takes ${median(each).toFixed(0)} ms, p99 ${p99(each).toFixed(0)} ms`)
  return [
    {
      id: 'C1',
      metric: 'durable creates, each ready, simulated hosts',
      unit: '/s',
      value: median(bench.samples.of('C1 creates', 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtLeast(200, '/s'),
      aim: valueAtLeast(1_000, '/s'),
    },
  ]
}

const LIVE = 25_000
const ROWS_OF_HOSTS = 800
const HISTORIES = [0, 100_000, 300_000, 1_000_000]
const RENEW_MS = 5_000
const PLOT_CELLS = 40

/** All that it has is live: creates go to the simulated hosts, placement looks at all 808. */
const withHistory = (finished: number): FleetRows => ({
  hosts: ROWS_OF_HOSTS,
  live: LIVE,
  finished,
  tenants: 50,
  template: TEMPLATE,
  free: { vcpu: 0, memory_mb: 0, disk_gb: 0 },
})

async function measureHistory(bench: ControlBench): Promise<Finding[]> {
  const [emptyUrl, fullUrl] = [await bench.postgres.createDatabase(), await bench.postgres.createDatabase()]
  const rows = new pg.Client({ connectionString: fullUrl })
  await rows.connect()
  await insertFleet(rows, withHistory(0))
  const renewing = setInterval(() => void renewFleet(rows).catch(() => undefined), RENEW_MS)
  try {
    await using empty = await ControlPlaneProcess.start(emptyUrl, join(bench.scratch, 'c4-empty'))
    await using full = await ControlPlaneProcess.start(fullUrl, join(bench.scratch, 'c4-full'))
    await empty.simulateHosts(HOSTS, ROOM)
    await full.simulateHosts(HOSTS, ROOM)
    const costs: { finished: number; cost: number }[] = []
    const histories = HISTORIES.slice(0, bench.count(HISTORIES.length))
    for (const [index, finished] of histories.entries()) {
      await insertFinished(rows, withHistory(finished), histories[index - 1] ?? 0)
      for (const side of [full, empty]) await creates(bench, side, bench.count(WARM_UP))
      for (let round = 0; round < bench.count(ROUNDS); round += 1) {
        bench.samples.add(`C4 ms a create, ${finished} finished`, 'ours', MS_PER_SECOND / (await creates(bench, full, bench.count(CREATES))), 'ms')
        bench.samples.add(`C4 ms a create, ${finished} finished`, 'peer', MS_PER_SECOND / (await creates(bench, empty, bench.count(CREATES))), 'ms')
      }
      const [ours, peer] = (['ours', 'peer'] as const).map((side) => median(bench.samples.of(`C4 ms a create, ${finished} finished`, side)))
      costs.push({ finished, cost: (ours ?? 0) / (peer ?? 1) })
    }
    for (const { finished, cost } of costs) {
      const bar = '█'.repeat(Math.max(1, Math.round((cost / 2) * PLOT_CELLS)))
      bench.note('C4', `${finished.toLocaleString('en-US').padStart(9)} finished ${bar.padEnd(PLOT_CELLS)} ${cost.toFixed(2)}× of an empty database`)
    }
    const last = histories.at(-1) ?? 0
    return [
      {
        id: 'C4',
        metric: `cost of a create with ${ROWS_OF_HOSTS} hosts, ${LIVE.toLocaleString('en-US')} live, ${last.toLocaleString('en-US')} finished`,
        unit: 'ms',
        value: median(bench.samples.of(`C4 ms a create, ${last} finished`, 'ours')),
        peer: 'own empty database',
        peerValue: median(bench.samples.of(`C4 ms a create, ${last} finished`, 'peer')),
        must: ratioAtMost(1.3),
        aim: ratioAtMost(1.1),
      },
    ]
  } finally {
    clearInterval(renewing)
    await rows.end()
  }
}

export const controlCreates: ControlFamily = { ids: ['C1'], measure: measureCreates }
export const history: ControlFamily = { ids: ['C4'], measure: measureHistory, isLong: true }
