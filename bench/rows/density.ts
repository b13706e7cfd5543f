/** D1: memory of an idle sandbox beyond what the raw runtime takes for the same one. Both sides run at once, so they share what can be shared. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { processesOf, sumPssMib } from '../installation/processes.ts'
import { asOptions, SMALL } from '../installation/sizes.ts'
import { settle } from '../measure/settle.ts'
import { RawGvisor, type RawSandbox } from '../peers/raw-gvisor.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SANDBOXES = 10
const SETTLE_MS = 2_000

const rolesMib = (home: string): number => sumPssMib(processesOf(home).flatMap(({ pid, sandbox }) => (sandbox === null ? [pid] : [])))

async function measure(bench: Bench): Promise<Finding[]> {
  const { home } = bench.installation
  const count = bench.count(SANDBOXES)
  await using stack = new AsyncDisposableStack()
  const first = stack.use(await Sandbox.create({ client: bench.client, resources: asOptions(SMALL), ttlSeconds: 1_800 }))
  await bench.freshness.prove(first)
  const raw = stack.use(new RawGvisor({ home, scratch: bench.scratch, cache: cachePlace() }))
  await settle(SETTLE_MS, bench.signal)
  const rolesBefore = rolesMib(home)
  const ours: Sandbox[] = []
  const peers: RawSandbox[] = []
  for (let index = 0; index < count; index += 1) {
    bench.signal.throwIfAborted()
    ours.push(stack.use(await Sandbox.create({ client: bench.client, resources: asOptions(SMALL), ttlSeconds: 1_800 })))
    const peer = await raw.prepare(SMALL)
    await raw.start(peer, bench.signal)
    peers.push(peer)
  }
  await settle(SETTLE_MS, bench.signal)
  const all = processesOf(home)
  for (const { id } of ours) bench.samples.add('D1 memory', 'ours', sumPssMib(all.flatMap(({ pid, sandbox }) => (sandbox === id ? [pid] : []))), 'MiB')
  for (const peer of peers) bench.samples.add('D1 memory', 'peer', sumPssMib(raw.pids(peer)), 'MiB')
  const roles = (rolesMib(home) - rolesBefore) / count
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const oursMib = mean(bench.samples.of('D1 memory', 'ours'))
  const peerMib = mean(bench.samples.of('D1 memory', 'peer'))
  bench.note('D1', `ours ${oursMib.toFixed(2)} MiB each, raw ${peerMib.toFixed(2)} MiB each; our roles grew by ${roles.toFixed(2)} MiB a sandbox`)
  return [
    {
      id: 'D1',
      metric: 'memory of an idle sandbox beyond the raw runtime',
      unit: 'MiB',
      value: oursMib + Math.max(0, roles) - peerMib,
      peer: 'all of raw runsc run -d',
      peerValue: peerMib,
      must: valueAtMost(3, 'MiB'),
      aim: valueAtMost(1, 'MiB'),
    },
  ]
}

export const density: Family = { ids: ['D1'], setting: 'no pool', measure }
