/** What becomes of a sandbox whose runtime ends without being told to, by its policy: through the real API, a real database and simulated hosts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS, type Sandbox, type SandboxStatus } from '@sandglass/contract'
import { MachineClient, type SimulatedHost, TEST_AUTHORITY, until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

const reached = (rig: Rig, id: string, status: SandboxStatus, generation: number): Promise<Sandbox> =>
  until(`${id} to be ${status} in a generation from ${generation} on`, async () => {
    const now = await rig.get(id)
    return now.status === status && now.generation >= generation ? now : undefined
  })
const quotaMb = async (rig: Rig): Promise<number | undefined> =>
  (await rig.rows<{ mb: number }>('SELECT memory_mb_used::int AS mb FROM sandglass.quotas'))[0]?.mb

/** The runtime ends by itself. */
async function exits(host: SimulatedHost, { id, generation }: Sandbox): Promise<void> {
  host.running.delete(id)
  await host.ended(id, generation, 'runtime_exited', 'memory: more than 512 MB')
}

test('the policy is shown, `never` when it is not said, and no other word is taken', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  assert.equal((await rig.create()).body.restart_policy, 'never')
  assert.equal((await rig.create({ restart_policy: 'on_host_loss' })).body.restart_policy, 'on_host_loss')
  assert.equal((await rig.create({ restart_policy: 'on_failure' })).problem?.code, 'invalid_request')
})

test('always: a runtime that ends by itself is placed again, in a later generation, with its quota held throughout', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always' })
  await exits(host, made)
  // Told twice: the second is about a generation that is over.
  await host.ended(made.id, made.generation, 'runtime_exited')
  const again = await reached(rig, made.id, 'ready', made.generation + 1)
  assert.deepEqual([again.generation, again.restarts, again.writable_layer, again.ended_at], [made.generation + 2, 1, 'present', null])
  assert.equal(host.running.get(made.id), again.generation)
  assert.equal(await quotaMb(rig), 512)
  const events = await rig.rows<{ type: string; reason: string | null }>(
    "SELECT type, reason FROM sandglass.events WHERE reason IS NOT NULL AND type = 'sandbox.pending'",
  )
  assert.deepEqual(events, [{ type: 'sandbox.pending', reason: 'runtime_exited: memory: more than 512 MB' }])
})

test('one end that is told to two control planes at once is one restart', async () => {
  await using rig = await startRig(postgres.current)
  await using twin = await startRig(postgres.current, { twinOf: rig })
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always' })
  host.running.delete(made.id)
  const item = { type: 'ended', sandbox: made.id, upto: made.generation, reason: 'runtime_exited', detail: null, pool_version: null } as const
  const identity = TEST_AUTHORITY.identity({ role: 'host', name: host.id })
  const tell = (url: string) => new MachineClient(url, identity).post(`/internal/v1/hosts/${host.id}/reports`, { epoch: host.epoch, items: [item] })
  await Promise.all([rig, twin, rig, twin].map(({ internalUrl }) => tell(internalUrl)))
  const again = await reached(rig, made.id, 'ready', made.generation + 1)
  assert.deepEqual([again.generation, again.restarts], [made.generation + 2, 1])
})

test('on_host_loss: placed again after its host was restarted, failed when it ended by itself', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'on_host_loss' })
  const { body: other } = await rig.create()
  await host.reboot()
  const again = await reached(rig, made.id, 'ready', made.generation + 1)
  assert.equal((await rig.get(other.id)).status, 'failed')
  await exits(host, again)
  const failed = await reached(rig, made.id, 'failed', again.generation + 1)
  assert.match(failed.status_reason ?? '', /^runtime_exited: memory/)
  await until('the quota to be given back', async () => (await quotaMb(rig)) === 0)
})

test('a crash loop comes to an end: failed, nothing held, and a start by hand begins a new row', async () => {
  await using rig = await startRig(postgres.current, { timing: { restartBaseMs: 1 } })
  const host = await rig.host()
  let { body: now } = await rig.create({ restart_policy: 'always' })
  for (let restarts = 0; restarts < LIMITS.restartsInARow; restarts += 1) {
    await exits(host, now)
    now = await reached(rig, now.id, 'ready', now.generation + 1)
    assert.equal(now.restarts, restarts + 1)
  }
  await exits(host, now)
  const failed = await reached(rig, now.id, 'failed', now.generation + 1)
  assert.match(failed.status_reason ?? '', /^restarts_used_up: it was restarted 8 times in a row/)
  await until('the quota to be given back', async () => (await quotaMb(rig)) === 0)
  assert.equal(host.starts.length, LIMITS.restartsInARow + 1)
  assert.deepEqual([(await rig.run('start', now.id)).body.restarts, await quotaMb(rig)], [0, 512])
})

test('a restart whose starts fail goes on with its row until one is ready, whoever waits for it', async () => {
  await using rig = await startRig(postgres.current, { timing: { restartBaseMs: 50 } })
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always' })
  host.script('fail')
  await exits(host, made)
  await until('the attempts of two restarts', () => (host.starts.length > 2 * LIMITS.startAttempts ? true : undefined))
  host.script('ready')
  const { status, body } = await rig.run('start', made.id)
  assert.deepEqual([status, body.status], [200, 'ready'])
  assert.ok(body.restarts > 1 && body.restarts <= LIMITS.restartsInARow, String(body.restarts))
  assert.equal(await quotaMb(rig), 512)
})

test('a restart that never starts comes to the same end, and who waits for it is told why', async () => {
  await using rig = await startRig(postgres.current, { timing: { restartBaseMs: 10 } })
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always' })
  host.script('fail')
  await exits(host, made)
  await reached(rig, made.id, 'pending', made.generation + 1)
  const { problem } = await rig.run('start', made.id, { wait: 30 })
  assert.equal(problem?.code, 'sandbox_start_failed')
  assert.match(problem.detail, /restarts_used_up: .*start_failed/)
  assert.equal(host.starts.length, 1 + LIMITS.restartsInARow * LIMITS.startAttempts)
  await until('the quota to be given back', async () => (await quotaMb(rig)) === 0)
})

test(`one that was ready for ${LIMITS.restartSteadySeconds} s begins a new row`, async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always' })
  const put = (seconds: number) =>
    rig.rows('UPDATE sandglass.sandboxes SET restarts = 5, ready_at = clock_timestamp() - make_interval(secs => $2) WHERE id = $1', [made.id, seconds])
  await put(LIMITS.restartSteadySeconds - 30)
  const listed = async () => (await rig.call<{ items: Sandbox[] }>('GET', '/v1/sandboxes')).body.items.map(({ restarts }) => restarts)
  assert.deepEqual([(await rig.get(made.id)).restarts, await listed()], [5, [5]])
  await put(LIMITS.restartSteadySeconds)
  assert.deepEqual([(await rig.get(made.id)).restarts, await listed()], [0, [0]], 'a row that is over is not shown')
  await exits(host, made)
  const again = await reached(rig, made.id, 'ready', made.generation + 1)
  assert.equal(again.restarts, 1)
  await put(LIMITS.restartSteadySeconds - 30)
  await exits(host, again)
  assert.equal((await reached(rig, made.id, 'ready', again.generation + 1)).restarts, 6)
})

test('while it pauses it holds no host, can be stopped, and is then not started; a start by hand waits for it', async () => {
  await using rig = await startRig(postgres.current, { timing: { restartBaseMs: 120_000 } })
  const host = await rig.host()
  const { body: made } = await rig.create({ restart_policy: 'always', name: 'box' })
  await exits(host, made)
  const pausing = await reached(rig, made.id, 'pending', made.generation + 1)
  assert.match(pausing.status_reason ?? '', /^runtime_exited/)
  const [capacity] = await rig.rows('SELECT memory_mb_reserved::int AS mb FROM sandglass.host_capacity')
  assert.deepEqual(capacity, { mb: 0 })
  const starting = await rig.run('start', 'box', { wait: 0 })
  assert.deepEqual([starting.status, starting.body.generation], [202, pausing.generation])
  assert.equal((await rig.operation(starting.body.operation_id ?? '')).kind, 'sandbox.start')
  const stopped = await rig.run('stop', 'box')
  assert.deepEqual([stopped.status, stopped.body.status, await quotaMb(rig)], [200, 'stopped', 0])
  assert.equal((await rig.operation(starting.body.operation_id ?? '')).problem?.code, 'sandbox_stopped')
  assert.equal((await rig.run('start', 'box')).body.status, 'ready', 'a start after a stop does not pause')
})
