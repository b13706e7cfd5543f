/** Warm pools of a live agent: the control plane is a script that keeps the pool's target and version. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { inventory } from '../../../tests/failure/leftovers.ts'
import type { Agent } from '../src/agent.ts'
import type { Clock } from '../src/clock.ts'
import { COMMAND_YOUNG_MS, REFILL_QUIET_MS } from '../src/domain/refill-pause.ts'
import type { Log } from '../src/log.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, testWorld } from './support/installation.ts'
import { ScriptedPool } from './support/scripted-pool.ts'
import { until } from './support/until.ts'

let installation: Installation
let agent: Agent
const room = { ...testWorld.room }
/** For the agent no time passes from here on. */
let stoppedAtMs: number | undefined
/** Of the next wait for quiet. */
let defect: Error | undefined
const clock: Clock = {
  ...testWorld.clock,
  nowMs: () => stoppedAtMs ?? testWorld.clock.nowMs(),
  wait(ms, signal) {
    if (defect === undefined || ms > REFILL_QUIET_MS || ms < REFILL_QUIET_MS / 2) return testWorld.clock.wait(ms, signal)
    const error = defect
    defect = undefined
    return Promise.reject(error)
  },
}
const errors: unknown[] = []
const log: Log = {
  ...testWorld.log,
  error: (event, fields) => {
    errors.push([event, fields])
    testWorld.log.error(event, fields)
  },
}

before(async () => {
  installation = await Installation.create({ SANDGLASS_CAPACITY_DISK_GB: '1000', SANDGLASS_CAPACITY_MEMORY_MB: '1000000' })
  agent = await installation.startAgent({ ...testWorld, clock, log, room })
})
after(() => installation[Symbol.asyncDispose]())

let sizes = 0
const pools: ScriptedPool[] = []

/** A pool of its own for one test: no two have the same memory. */
async function newPool(): Promise<ScriptedPool> {
  sizes += 1
  const pool = await ScriptedPool.of(installation, agent.hostId, { resources: { vcpu: 0.1, memory_mb: 128 + sizes, disk_gb: 1 } })
  pools.push(pool)
  return pool
}
afterEach(async () => {
  for (const pool of pools.splice(0)) {
    pool.aim(0)
    await pool.untilAcknowledged()
  }
})

/** Versions that the agent has acknowledged, oldest first. */
const acknowledgements = (pool: ScriptedPool): number[] =>
  installation.plane.reports.flatMap((report) => (report.type === 'pool' && report.key === pool.key ? [report.version] : []))

/** Of all pools: a test has one that is not empty. */
async function targets(): Promise<number> {
  const text = await (await fetch(`${agent.healthUrl}/metrics`)).text()
  return Number(/^sandglass_host_pool_target_members (\d+)$/m.exec(text)?.[1])
}

/** Members of all pools that came up. */
async function boots(): Promise<number> {
  return Number(/^sandglass_host_pool_boots_total (\d+)$/m.exec(await (await fetch(`${agent.healthUrl}/metrics`)).text())?.[1] ?? 0)
}

/** At this very moment. */
const runtimesNow = (): number => readdirSync(agent.layout.runtimes).length
const onMachine = async (): Promise<string[]> => (await readdir(agent.layout.runtimes)).sort()

test('a pool fills to its target; a claim gets a member with an identity of its own; the pool fills again', async () => {
  const pool = await newPool()
  pool.aim(2)
  await pool.untilAcknowledged()
  await pool.untilReady(agent.healthUrl)
  const members = await onMachine()
  assert.equal(members.length, 2)

  const ready = await pool.start({ env: { GREETING: 'hello' } })
  assert.equal(ready.path, 'claimed')
  assert.deepEqual(Object.keys(ready.timings_ms), ['accept', 'pick', 'record', 'identity', 'limits', 'total'])
  const gateway = new GatewayClient(agent.dataPlaneUrl, ready.sandbox, 1)
  assert.equal((await gateway.run('echo "$GREETING"')).stdout, 'hello\n')
  gateway.close()
  assert.deepEqual(await onMachine(), members, 'the member is on the machine under its own name')

  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  assert.equal(await agent.census(), 0)
  assert.equal((await pool.end(ready.sandbox)).pool_version, pool.version)
  assert.equal((await onMachine()).filter((name) => members.includes(name)).length, 1, 'the claimed member is gone and never returns')
})

test('a ticket without a pool never gets a member', async () => {
  const pool = await newPool()
  pool.aim(1)
  await pool.untilReady(agent.healthUrl)
  const { sandbox, ticket, spec } = pool.ticket(null)
  installation.plane.sendStart(ticket, spec)
  assert.equal((await installation.plane.untilReported('ready', sandbox)).path, 'cold')
  installation.plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  assert.equal((await installation.plane.untilReported('ended', sandbox)).pool_version, null)
})

test('200 claims on a pool of 50 get 200 runtimes; no member is given twice', async () => {
  const { plane } = installation
  const pool = await newPool()
  pool.aim(50)
  await pool.untilReady(agent.healthUrl)
  const sandboxes: string[] = []
  for (let round = 0; round < 4; round += 1) {
    if (round > 0) pool.aim(50)
    for (let index = 0; index < 50; index += 1) {
      const { sandbox, ticket, spec } = pool.claim()
      sandboxes.push(sandbox)
      plane.sendStart(ticket, spec)
    }
  }
  const all = await Promise.all(sandboxes.map((sandbox) => plane.untilReported('ready', sandbox, () => true, 60_000)))
  assert.equal(new Set(all.map(({ evidence }) => evidence['guest_boot_id'])).size, 200)
  const names = sandboxes.map(async (sandbox) => JSON.parse(await readFile(join(agent.layout.sandboxes, `${sandbox}.json`), 'utf8')).runtime.name)
  assert.equal(new Set(await Promise.all(names)).size, 200)
  const claimed = all.filter(({ path }) => path === 'claimed').length
  assert.ok(claimed >= 50, `${claimed} were claimed`)
  assert.equal(await agent.census(), 0)
  for (const sandbox of sandboxes) plane.sendEnd({ sandbox, upto: 2, host: agent.hostId, pool: pool.known })
  const ends = await Promise.all(sandboxes.map((sandbox) => plane.untilReported('ended', sandbox, () => true, 60_000)))
  assert.ok(ends.every((ended) => ended.pool_version === pool.version))
  assert.deepEqual(await onMachine(), [])
})

test('a pool is refilled also while claims come one after the other', async () => {
  const pool = await newPool()
  pool.aim(8)
  await pool.untilReady(agent.healthUrl)
  const before = await boots()
  const sandboxes: string[] = []
  // Never quiet for long, and over before the longest time for which a pool is left alone.
  for (let claims = 0; claims < 6; claims += 1) {
    const start = pool.start()
    await testWorld.clock.wait(140)
    const { path, sandbox } = await start
    assert.equal(path, 'claimed')
    sandboxes.push(sandbox)
    pool.aim(8)
  }
  // One that is on its way has begun while claims came.
  const { booting } = await pool.members(agent.healthUrl)
  assert.ok(booting > 0 || (await boots()) > before, 'none was booted')
  for (const sandbox of sandboxes) await pool.end(sandbox)
})

test('a pool is left alone while a sandbox is started and gets its command, and is refilled when that is over', async () => {
  const pool = await newPool()
  pool.aim(4)
  await pool.untilReady(agent.healthUrl)
  const before = await boots()
  stoppedAtMs = testWorld.clock.nowMs()
  try {
    const { sandbox } = await pool.start()
    pool.aim(4)
    await pool.untilAcknowledged()
    const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
    await gateway.run('true')
    gateway.close()
    const { booting, ready } = await pool.members(agent.healthUrl)
    assert.deepEqual([booting, ready, await boots()], [0, 3, before])
    // One that runs on is no reason to wait for ever.
    const long = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
    const running = long
      .send('POST', '/v1/exec', JSON.stringify({ argv: ['/bin/sleep', '100'] }), { 'content-type': 'application/json' })
      .catch(() => undefined)
    stoppedAtMs = undefined
    await pool.untilReady(agent.healthUrl)
    long.close()
    await running
    await pool.end(sandbox)
  } finally {
    stoppedAtMs = undefined
  }
})

test('a pool is refilled beside the later commands of a sandbox', async () => {
  const pool = await newPool()
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  const { sandbox } = await pool.start()
  const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
  await gateway.run('true')
  // It is quiet by then, and would not get quiet again behind a command that counts.
  stoppedAtMs = testWorld.clock.nowMs() + COMMAND_YOUNG_MS
  try {
    await gateway.run('true')
    pool.aim(2)
    await pool.untilReady(agent.healthUrl)
  } finally {
    stoppedAtMs = undefined
    gateway.close()
  }
  await pool.end(sandbox)
})

test('a pause of refilling that fails is told', async () => {
  const pool = await newPool()
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  defect = new Error('it stands still')
  const { sandbox } = await pool.start()
  await until('the error is told', () => errors.length > 0 || undefined, 5_000)
  assert.deepEqual(errors.splice(0), [['pool.pause_failed', { reason: 'it stands still' }]])
  // And nothing waits for ever.
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  await pool.end(sandbox)
})

test('an order that comes late changes nothing, and is answered with what holds (pool.ver)', async () => {
  const pool = await newPool()
  pool.version = 3
  pool.order()
  await pool.untilAcknowledged(3)
  pool.order({ ...pool.position, version: 2, target: 3 })
  await until('a second acknowledgement', () => (acknowledgements(pool).length >= 2 ? true : undefined))
  assert.deepEqual(acknowledgements(pool), [3, 3])
  assert.equal(await targets(), 0)
})

test('what is told of another epoch is nothing (pool.epoch)', async () => {
  const { plane } = installation
  const pool = await newPool()
  pool.aim(0)
  await pool.untilAcknowledged()
  const position = { ...pool.position, version: 9, target: 2 }
  pool.order(position, plane.epoch + 1)
  plane.sendEnd({ sandbox: newSandbox(), upto: 1, host: agent.hostId, pool: { epoch: plane.epoch - 1, position } })
  await plane.barrier(newSandbox(), agent.hostId)
  assert.equal(await targets(), 0)
  assert.deepEqual(acknowledgements(pool), [1])
})

test('the position that a claim made holds from its ticket on (pool.ticket)', async () => {
  const pool = await newPool()
  pool.aim(1)
  await pool.untilReady(agent.healthUrl)
  const { sandbox } = await pool.start()
  assert.equal(await targets(), 0)
  pool.order({ ...pool.position, version: 1, target: 1 })
  await installation.plane.barrier(newSandbox(), agent.hostId)
  assert.equal(await targets(), 0, 'the order was made before the claim')
  assert.equal((await pool.end(sandbox)).pool_version, 2)
})

test('a lower target is acknowledged once no more members exist (pool.ackn)', async () => {
  const { plane } = installation
  const pool = await newPool()
  pool.aim(4)
  await pool.untilReady(agent.healthUrl)
  let existed = -1
  plane.outcome = (report) => {
    if (report.type === 'pool' && report.version === 2) existed = runtimesNow()
    return 'accepted'
  }
  pool.aim(1)
  await pool.untilAcknowledged()
  plane.outcome = () => 'accepted'
  assert.ok(existed >= 0 && existed <= 1, `${existed} runtimes existed`)
})

test('the end of a claim whose ticket never came is told once its unit is free (ended.pool)', async () => {
  const { plane } = installation
  const pool = await newPool()
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  const { sandbox } = pool.claim()
  let existed = -1
  plane.outcome = (report) => {
    if (report.type === 'ended' && report.sandbox === sandbox) existed = runtimesNow()
    return 'accepted'
  }
  const ended = await pool.end(sandbox)
  plane.outcome = () => 'accepted'
  assert.equal(ended.pool_version, 2)
  assert.ok(existed >= 0 && existed <= 1, `${existed} runtimes existed`)
})

test('a ticket whose spec is not of the pool that it names is refused, and takes nothing', async () => {
  const { plane } = installation
  const [pool, other] = [await newPool(), await newPool()]
  pool.aim(1)
  await pool.untilReady(agent.healthUrl)
  pool.target -= 1
  pool.version += 1
  const { sandbox, ticket, spec } = other.ticket(pool.position)
  plane.sendStart(ticket, spec)
  assert.equal((await plane.untilReported('refused', sandbox)).code, 'ticket_invalid')
  assert.equal((await pool.members(agent.healthUrl)).ready, 1)
})

test('a member that dies is replaced', async () => {
  const pool = await newPool()
  pool.aim(1)
  await pool.untilReady(agent.healthUrl)
  const [member = ''] = await onMachine()
  const guest = inventory({ home: installation.dir, name: installation.installation }).find(({ kind, sandbox }) => kind === 'process' && sandbox === member)
  process.kill(Number(/\d+/.exec(guest?.what ?? '')?.[0]), 'SIGKILL')
  await until('another member', async () => ((await onMachine()).length === 1 && !(await onMachine()).includes(member) ? true : undefined))
  await pool.untilReady(agent.healthUrl)
})

test('a pool is not filled below the least free memory, and is filled when there is room again', async () => {
  const pool = await newPool()
  Object.assign(room, { freeMemoryMb: () => LIMITS.hostFreeMemoryMbFloor - 1 })
  pool.aim(1)
  await pool.untilAcknowledged()
  await installation.plane.barrier(newSandbox(), agent.hostId)
  assert.deepEqual(await onMachine(), [])
  // A claim starts cold, and is refused for the same want.
  const { sandbox, ticket, spec } = pool.claim()
  installation.plane.sendStart(ticket, spec)
  assert.equal((await installation.plane.untilReported('refused', sandbox)).code, 'unschedulable')
  Object.assign(room, { freeMemoryMb: () => LIMITS.hostFreeMemoryMbFloor })
  pool.aim(1)
  await pool.untilReady(agent.healthUrl)
})

test('members end with their agent, sandboxes do not, and the next agent fills to the target on disk', async () => {
  const pool = await newPool()
  pool.aim(3)
  await pool.untilReady(agent.healthUrl)
  const { sandbox } = await pool.start()
  const members = await onMachine()
  await installation.stopAgent(agent)
  const [left = '', ...more] = await onMachine()
  assert.ok(members.includes(left) && more.length === 0, 'only what was claimed is left')
  agent = await installation.startAgent({ ...testWorld, room })
  await pool.untilReady(agent.healthUrl, 2)
  assert.equal((await onMachine()).filter((name) => members.includes(name)).length, 1)
  const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
  assert.equal((await gateway.run('echo here')).stdout, 'here\n')
  gateway.close()
  await pool.end(sandbox)
})

test('with a new epoch every target is zero, and nothing of the old one is left (pool.reset, register.empty)', async () => {
  const { plane } = installation
  const pool = await newPool()
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
  const { sandbox } = await pool.start()
  const epoch = plane.epoch
  plane.fence()
  await until('another epoch', () => (plane.epoch > epoch + 1 ? true : undefined))
  await plane.untilWatching()
  assert.deepEqual(await onMachine(), [])
  assert.equal((await plane.untilReported('ended', sandbox)).upto, 1)
  await plane.barrier(newSandbox(), agent.hostId)
  assert.equal(await targets(), 0)
  pool.order({ ...pool.position, version: 1, target: 1 }, epoch)
  await plane.barrier(newSandbox(), agent.hostId)
  assert.deepEqual(await onMachine(), [])
  // Versions of the old epoch are forgotten, too.
  pool.version = 0
  pool.aim(2)
  await pool.untilReady(agent.healthUrl)
})
