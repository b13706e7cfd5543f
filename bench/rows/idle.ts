/** D2, C7: what an installation uses when nobody uses it: memory with no sandbox, CPU with two hundred. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { layoutOf } from '@sandglass/host-agent/state/layout'
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { endAll } from '../installation/crash-gate.ts'
import { cgroupCpuNs, cpuNs, processesOf, sumPssMib } from '../installation/processes.ts'
import { asOptions, SMALL } from '../installation/sizes.ts'
import { inFlight } from '../measure/interleave.ts'
import { settle } from '../measure/settle.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const SANDBOXES = 200
const CREATES_IN_FLIGHT = 8
const SETTLE_MS = 3_000
const WINDOW_MS = 10_000
const NS_PER_MS = 1e6

/** The control group of all runtimes of an installation. */
function runtimesGroup(home: string): string {
  const installation = createHash('sha256').update(home).digest('hex').slice(0, 8)
  return layoutOf(join(home, 'host'), installation).cgroupParent
}

async function measureMemory(bench: Bench): Promise<Finding[]> {
  await settle(SETTLE_MS, bench.signal)
  const processes = processesOf(bench.installation.home)
  const value = sumPssMib(processes.map(({ pid }) => pid))
  bench.samples.add('C7 memory', 'ours', value, 'MiB')
  return [
    {
      id: 'C7',
      metric: 'memory of an idle installation, all processes',
      unit: 'MiB',
      value,
      peer: '',
      peerValue: null,
      must: valueAtMost(400, 'MiB'),
      aim: valueAtMost(250, 'MiB'),
    },
  ]
}

async function measureCpu(bench: Bench): Promise<Finding[]> {
  const { home } = bench.installation
  const count = bench.count(SANDBOXES)
  const sandboxes = await inFlight(
    CREATES_IN_FLIGHT,
    Array.from({ length: count }, () => () => Sandbox.create({ client: bench.client, resources: asOptions(SMALL), ttlSeconds: 1_800 })),
  )
  try {
    await settle(SETTLE_MS, bench.signal)
    const roles = processesOf(home).flatMap(({ pid, sandbox }) => (sandbox === null ? [pid] : []))
    const group = runtimesGroup(home)
    const used = (): { roles: number; runtimes: number } => ({ roles: roles.reduce((sum, pid) => sum + cpuNs(pid), 0), runtimes: cgroupCpuNs(group) })
    const before = used()
    const began = performance.now()
    await settle(WINDOW_MS, bench.signal)
    const after = used()
    const share = (ns: number): number => (100 * ns) / NS_PER_MS / (performance.now() - began)
    const [ofRoles, ofRuntimes] = [share(after.roles - before.roles), share(after.runtimes - before.runtimes)]
    bench.samples.add('D2 cpu of roles', 'ours', ofRoles, '%')
    bench.samples.add('D2 cpu of runtimes', 'ours', ofRuntimes, '%')
    bench.note('D2', `our roles ${ofRoles.toFixed(2)} %, the ${count} runtimes with their guest agents ${ofRuntimes.toFixed(2)} % of one core`)
    return [
      {
        id: 'D2',
        metric: `CPU with ${count} idle sandboxes, of one core`,
        unit: '%',
        value: ofRoles + ofRuntimes,
        peer: '',
        peerValue: null,
        must: valueAtMost(5, '%'),
        aim: valueAtMost(2, '%'),
      },
    ]
  } finally {
    for (const line of (await endAll(bench.installation, sandboxes, 0)).slice(0, 10)) bench.note('D2', line)
  }
}

export const idleMemory: Family = { ids: ['C7'], setting: 'no pool', measure: measureMemory }
export const idleCpu: Family = { ids: ['D2'], setting: 'no pool', measure: measureCpu }
