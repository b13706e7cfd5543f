/** D1: memory of an idle sandbox beyond what the raw runtime takes for the same one. Both sides run at once, so they share what can be shared. */
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { processesOf, roleProcesses, sumPssMib } from '../installation/processes.ts'
import { asOptions, SMALL } from '../installation/sizes.ts'
import type { Side } from '../measure/samples.ts'
import { settle } from '../measure/settle.ts'
import { RawGvisor, type RawSandbox } from '../peers/raw-gvisor.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const MEMORY = 'D1 memory'
/** Enough that what a role's heap takes by itself is little for each. */
const SANDBOXES = 25
const SETTLE_MS = 3_000

/** @param others share the template with ours and may be taken for ours, because it lies in our home */
function rolesMib(home: string, others: readonly number[]): number {
  const pids = roleProcesses(home).flatMap((role) => role.pids)
  return sumPssMib(pids.filter((pid) => !others.includes(pid)))
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** @throws Error when nothing of it was found, which would count as no memory */
function keep(bench: Bench, side: Side, what: string, pids: readonly number[]): void {
  const mib = sumPssMib(pids)
  if (mib === 0) throw new Error(`no memory was found for ${what}`)
  bench.samples.add(MEMORY, side, mib, 'MiB')
}

async function measure(bench: Bench): Promise<Finding[]> {
  const { home } = bench.installation
  const count = bench.count(SANDBOXES)
  await using stack = new AsyncDisposableStack()
  const create = async (): Promise<Sandbox> => stack.use(await Sandbox.create({ client: bench.client, resources: asOptions(SMALL), ttlSeconds: 1_800 }))
  const first = await create()
  await bench.freshness.prove(first)
  const raw = stack.use(new RawGvisor({ home, scratch: bench.scratch, cache: cachePlace() }))
  await settle(SETTLE_MS, bench.signal)
  const rolesBefore = rolesMib(home, [])
  const ours: Sandbox[] = []
  const peers: RawSandbox[] = []
  for (let index = 0; index < count; index += 1) {
    bench.signal.throwIfAborted()
    ours.push(await create())
    const peer = await raw.prepare(SMALL)
    await raw.start(peer, bench.signal)
    peers.push(peer)
  }
  await settle(SETTLE_MS, bench.signal)
  const all = processesOf(home)
  for (const { id } of ours) {
    keep(
      bench,
      'ours',
      id,
      all.flatMap(({ pid, sandbox }) => (sandbox === id ? [pid] : [])),
    )
  }
  for (const peer of peers) keep(bench, 'peer', peer.name, raw.pids(peer))
  const rolesAfter = rolesMib(
    home,
    peers.flatMap((peer) => raw.pids(peer)),
  )
  const roles = Math.max(0, rolesAfter - rolesBefore) / count
  bench.samples.add('D1 growth of roles', 'ours', roles, 'MiB')
  // Only now: a command that has run is no idle sandbox any more, and the raw one has run none.
  for (const sandbox of ours) await bench.freshness.prove(sandbox)
  const [oursMib, peerMib] = [mean(bench.samples.of(MEMORY, 'ours')), mean(bench.samples.of(MEMORY, 'peer'))]
  bench.note('D1', `ours ${oursMib.toFixed(2)} MiB each, raw ${peerMib.toFixed(2)} MiB each; our roles grew by ${roles.toFixed(2)} MiB a sandbox`)
  return [
    {
      id: 'D1',
      metric: 'memory of an idle sandbox beyond the raw runtime',
      unit: 'MiB',
      value: oursMib + roles - peerMib,
      peer: 'all of raw runsc run -d',
      peerValue: peerMib,
      must: valueAtMost(3, 'MiB'),
      aim: valueAtMost(1, 'MiB'),
    },
  ]
}

export const density: Family = { ids: ['D1'], setting: 'no pool', measure }
