/** D2, C7: what an installation uses when nobody uses it: memory with no sandbox, CPU with two hundred. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { layoutOf } from '@sandglass/host-agent/state/layout'
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { endAll } from '../installation/crash-gate.ts'
import { cgroupCpuNs, cpuNs, roleProcesses, sumPssMib } from '../installation/processes.ts'
import { asOptions, SMALL } from '../installation/sizes.ts'
import { inFlight } from '../measure/interleave.ts'
import { settle } from '../measure/settle.ts'
import { median } from '../measure/statistics.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SANDBOXES = 200
const IN_FLIGHT = 8
const SETTLE_MS = 5_000
/** Two rounds of everything that a host does each thirty seconds. */
const WINDOW_MS = 60_000
const MEMORY_LOOKS = 5
const MEMORY_LOOK_EVERY_MS = 1_000
const NS_PER_MS = 1e6

const MEMORY = 'C7 memory'

type ByRole = { readonly role: string; readonly value: number }

const sum = (parts: readonly ByRole[]): number => parts.reduce((total, { value }) => total + value, 0)

const told = (parts: readonly ByRole[], digits: number): string => parts.map(({ role, value }) => `${role} ${value.toFixed(digits)}`).join(', ')

const by = (home: string, of: (pids: readonly number[]) => number): ByRole[] => roleProcesses(home).map(({ role, pids }) => ({ role, value: of(pids) }))

/** The control group of all runtimes of an installation. */
function runtimesGroup(home: string): string {
  const installation = createHash('sha256').update(home).digest('hex').slice(0, 8)
  return layoutOf(join(home, 'host'), installation).cgroupParent
}

async function measureMemory(bench: Bench): Promise<Finding[]> {
  await settle(SETTLE_MS, bench.signal)
  let parts: ByRole[] = []
  for (let look = 0; look < bench.count(MEMORY_LOOKS); look += 1) {
    await settle(MEMORY_LOOK_EVERY_MS, bench.signal)
    parts = by(bench.installation.home, sumPssMib)
    bench.samples.add(MEMORY, 'ours', sum(parts), 'MiB')
  }
  bench.note('C7', `${told(parts, 0)} MiB`)
  return [
    {
      id: 'C7',
      metric: 'memory of an idle installation, without pool members',
      unit: 'MiB',
      value: median(bench.samples.of(MEMORY, 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtMost(400, 'MiB'),
      aim: valueAtMost(250, 'MiB'),
    },
  ]
}

type Usage = { readonly atMs: number; readonly roles: readonly ByRole[]; readonly runtimesNs: number }

function usage(home: string, group: string): Usage {
  const roles = by(home, (pids) => pids.reduce((total, pid) => total + cpuNs(pid), 0))
  return { atMs: performance.now(), roles, runtimesNs: cgroupCpuNs(group) }
}

/** How many of them run, as the API says. */
async function running(bench: Bench, sandboxes: readonly Sandbox[]): Promise<number> {
  const ready = new Set((await bench.installation.sandboxes()).filter(({ status }) => status === 'ready').map(({ id }) => id))
  return sandboxes.filter(({ id }) => ready.has(id)).length
}

/** What is used while nothing is asked, in percent of one core; not even the looks of this program are among it. */
async function idleWindow(bench: Bench): Promise<{ readonly roles: readonly ByRole[]; readonly runtimes: number }> {
  const { home } = bench.installation
  const group = runtimesGroup(home)
  const before = usage(home, group)
  await settle(WINDOW_MS, bench.signal)
  const after = usage(home, group)
  const percent = (ns: number): number => (100 * ns) / NS_PER_MS / (after.atMs - before.atMs)
  const roles = after.roles.map(({ role, value }) => ({ role, value: percent(value - (before.roles.find((one) => one.role === role)?.value ?? 0)) }))
  return { roles, runtimes: percent(after.runtimesNs - before.runtimesNs) }
}

async function measureCpu(bench: Bench): Promise<Finding[]> {
  const count = bench.count(SANDBOXES)
  const create = async (): Promise<Sandbox> => {
    bench.signal.throwIfAborted()
    return Sandbox.create({ client: bench.client, resources: asOptions(SMALL), ttlSeconds: 1_800 })
  }
  const sandboxes = await inFlight(
    IN_FLIGHT,
    Array.from({ length: count }, () => create),
  )
  await settle(SETTLE_MS, bench.signal)
  const { roles, runtimes } = await idleWindow(bench)
  const alive = await running(bench, sandboxes)
  await inFlight(
    IN_FLIGHT,
    sandboxes.map((sandbox) => () => bench.freshness.prove(sandbox)),
  )
  for (const line of (await endAll(bench.installation, sandboxes, 0)).slice(0, 10)) bench.note('D2', line)
  bench.samples.add('D2 cpu of roles', 'ours', sum(roles), '%')
  bench.samples.add('D2 cpu of runtimes', 'ours', runtimes, '%')
  bench.note('D2', `the ${count} runtimes with their guest agents ${runtimes.toFixed(2)} % of one core; ${told(roles, 2)} %`)
  return [
    {
      id: 'D2',
      metric: `CPU with ${count} idle sandboxes, of one core`,
      unit: '%',
      value: sum(roles) + runtimes,
      peer: '',
      peerValue: null,
      must: valueAtMost(5, '%'),
      aim: valueAtMost(2, '%'),
      void: alive === count ? undefined : `only ${alive} of ${count} ran to the end`,
    },
  ]
}

export const idleMemory: Family = { ids: ['C7'], setting: 'as installed', measure: measureMemory }
export const idleCpu: Family = { ids: ['D2'], setting: 'no pool', measure: measureCpu }
