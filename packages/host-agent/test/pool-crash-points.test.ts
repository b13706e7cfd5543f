/**
 * The agent is killed at every point that a claim and a pool pass, then started again: nobody has a member twice, a member that nobody had is gone,
 * what had its identity lives on, and the pool fills again. On gVisor, whose runtimes outlive their agent in any case.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { differences, inventory, wholeMembers } from '../../../tests/failure/leftovers.ts'
import type { CrashPoint } from '../src/faults/crash-point.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation } from './support/installation.ts'
import { MortalAgent } from './support/mortal-agent.ts'
import { ScriptedPool } from './support/scripted-pool.ts'
import { until } from './support/until.ts'

let installation: Installation
let pool: ScriptedPool
let agent: MortalAgent

before(async () => {
  installation = await Installation.create()
  agent = new MortalAgent(installation)
  await agent.start()
  const host = installation.plane.registrations[0]?.host_id ?? ''
  pool = await ScriptedPool.of(installation, host, { driver: 'gvisor', resources: { vcpu: 0.5, memory_mb: 256, disk_gb: 1 } })
})
after(() => installation[Symbol.asyncDispose]())

async function healthUrl(): Promise<string> {
  const { health_url }: { health_url: string } = JSON.parse(await readFile(join(installation.dir, 'host/agent.json'), 'utf8'))
  return health_url
}

/** Exactly so many whole members, these sandboxes, and nothing else of this installation. */
async function assertOnMachine(live: readonly string[], members: number): Promise<void> {
  let lines: string[] = []
  const look = (): true | undefined => {
    const things = inventory({ home: installation.dir, name: installation.installation })
    lines = [...differences(things, new Set(live)), `${wholeMembers(things).size} members`]
    return lines.length === 1 && lines[0] === `${members} members` ? true : undefined
  }
  await until('the machine to be as it should', look, 30_000).catch(() => assert.deepEqual(lines, [`${members} members`]))
}

/** The pool of the agent that runs now. */
async function fill(target: number): Promise<void> {
  pool.aim(target)
  await pool.untilAcknowledged()
  await pool.untilReady(await healthUrl())
}

/** Before these the pick is not on disk: nothing of the claim may be remembered. */
const FORGETS: readonly CrashPoint[] = ['pool.picked', 'start.decided']
/** From here on the guest knows whose it is: the sandbox lives on. */
const ADOPTS: readonly CrashPoint[] = ['start.identity', 'start.limits', 'start.ready_recorded', 'start.reported']
const CLAIM_POINTS = ['pool.picked', 'start.decided', 'start.recorded', ...ADOPTS] as const

for (const point of CLAIM_POINTS) {
  test(`killed at ${point} of a claim`, async () => {
    await agent.kill()
    await agent.start(point)
    await fill(2)
    const { sandbox, ticket, spec } = pool.claim()
    installation.plane.sendStart(ticket, spec)
    await agent.untilKilled()
    const reports = installation.plane.reports.length
    await agent.start()
    if (ADOPTS.includes(point)) {
      await until('ready again', () =>
        installation.plane.reports.slice(reports).some((report) => report.type === 'ready' && report.sandbox === sandbox) ? true : undefined,
      )
      await assertOnMachine([sandbox], pool.target)
      const gateway = new GatewayClient(installation.plane.registrations.at(-1)?.data_plane_url ?? '', sandbox, 1)
      assert.equal((await gateway.run('echo $((6*7))')).stdout, '42\n')
      gateway.close()
      assert.equal((await pool.end(sandbox)).pool_version, pool.version)
    } else if (FORGETS.includes(point)) {
      // The order is still due, and the start is another one.
      pool.order()
      await assertOnMachine([], pool.target)
      installation.plane.sendStart(ticket, spec)
      assert.equal((await installation.plane.untilReported('ready', sandbox)).path, 'claimed')
      await pool.end(sandbox)
    } else {
      const ended = await installation.plane.untilReported('ended', sandbox)
      assert.deepEqual([ended.upto, ended.reason, ended.pool_version], [1, 'recovered', pool.version])
      assert.deepEqual(installation.plane.reported('ready', sandbox), [])
    }
    await assertOnMachine([], pool.target)
  })
}

for (const point of ['start.directories', 'start.network', 'start.bundle', 'start.launching', 'start.launched', 'start.guest', 'pool.booted'] as const) {
  test(`killed at ${point} of a member`, async () => {
    await fill(0)
    await agent.kill()
    await agent.start(point)
    pool.aim(2)
    await agent.untilKilled()
    await agent.start()
    pool.order()
    await pool.untilReady(await healthUrl())
    await assertOnMachine([], 2)
  })
}

for (const point of ['pool.stored', 'pool.reported'] as const) {
  test(`killed at ${point}`, async () => {
    await fill(0)
    await agent.kill()
    await agent.start(point)
    pool.aim(1)
    await agent.untilKilled()
    await agent.start()
    // It was on disk, so it holds without being told again, and what is older changes nothing.
    pool.order({ ...pool.position, version: pool.version - 1, target: 5 })
    await pool.untilReady(await healthUrl(), 1)
    await assertOnMachine([], 1)
  })
}

for (const point of ['stop.runtime', 'stop.network', 'stop.directories'] as const) {
  test(`killed at ${point} of a member that is not needed`, async () => {
    // What recovery takes down passes the same points.
    await fill(0)
    await agent.kill()
    await agent.start(point)
    await fill(2)
    pool.aim(1)
    await agent.untilKilled()
    await agent.start()
    pool.order()
    await pool.untilAcknowledged()
    await pool.untilReady(await healthUrl())
    await assertOnMachine([], 1)
  })
}
