/** The end that comes when nobody uses a sandbox: what counts as use, what does not, and when nobody can know. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { LIMITS, type Sandbox } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { Timeouts } from '../src/reconcilers/timeouts.ts'
import { realWorld } from '../src/world.ts'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const SECONDS = LIMITS.idleTimeoutSecondsMin

const STEP_MS = LIMITS.leaseMs / 3

/** Looks on a clock of their own, since the rig's take a lease of real time to reach back for one. */
function lookerOf(rig: Rig) {
  let nowMs = 0
  const timeouts = new Timeouts({ config: rig.config, db: rig.db.for('reconcilers'), world: { ...realWorld, monotonicMs: () => nowMs } })
  /** @returns how many it ended */
  const look = async (afterMs: number): Promise<number> => {
    nowMs += afterMs
    return (await timeouts.reconcile()).actions
  }
  return {
    look,
    async lookForALease(): Promise<void> {
      for (let looks = 0; looks < 4; looks += 1) await look(STEP_MS)
    },
  }
}

/** What a gateway asks before it lets anybody in. */
async function use(rig: Rig, id: string): Promise<void> {
  await rig.gateway.post('/internal/v1/access', { key_sha256: hash('sha256', rig.keys.member), sandbox_id: id })
}

/** So many seconds pass in which nobody uses it. */
const pass = (rig: Rig, id: string, seconds: number) =>
  rig.rows('UPDATE sandglass.sandboxes SET idle_at = idle_at - make_interval(secs => $2) WHERE id = $1', [id, seconds])
const seen = (rig: Rig, id: string, status: Sandbox['status']): Promise<Sandbox> =>
  until(`${id} to be ${status}`, async () => {
    const sandbox = await rig.get(id)
    return sandbox.status === status ? sandbox : undefined
  })
const leftMs = ({ idle_at }: Sandbox): number => Date.parse(idle_at ?? '') - Date.now()

describe('idle timeout', () => {
  test('one that nobody uses is deleted, and says why', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ idle_timeout_seconds: SECONDS })
    assert.ok(leftMs(body) > (SECONDS - 10) * 1_000)
    await pass(rig, body.id, SECONDS)
    await lookerOf(rig).lookForALease()
    assert.match((await seen(rig, body.id, 'terminated')).status_reason ?? '', /^idle_timeout: /)
    const [audit] = await rig.rows("SELECT actor_type, actor_id, detail FROM sandglass.audit_log WHERE action = 'sandbox.delete'")
    assert.deepEqual(audit, { actor_type: 'system', actor_id: 'idle', detail: { reason: 'idle' } })
  })

  test('or stopped where it asked for that, and its idle time begins anew with its next run', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ idle_timeout_seconds: SECONDS, on_timeout: 'stop' })
    await pass(rig, body.id, SECONDS)
    await lookerOf(rig).lookForALease()
    const stopped = await seen(rig, body.id, 'stopped')
    assert.match(stopped.status_reason ?? '', /^idle_timeout: /)
    assert.equal(stopped.idle_at, null)
    const [audit] = await rig.rows("SELECT actor_id FROM sandglass.audit_log WHERE action = 'sandbox.stop'")
    assert.deepEqual(audit, { actor_id: 'idle' })
    await rig.call('POST', `/v1/sandboxes/${body.id}/start`)
    const again = await seen(rig, body.id, 'ready')
    assert.ok(leftMs(again) > (SECONDS - 10) * 1_000)
  })

  test('a use moves the end away, and an older one never brings it nearer', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ idle_timeout_seconds: SECONDS })
    await pass(rig, body.id, SECONDS / 2)
    await use(rig, body.id)
    const used = await until('the use to be noted', async () => {
      const sandbox = await rig.get(body.id)
      return leftMs(sandbox) > (SECONDS - 10) * 1_000 ? sandbox : undefined
    })
    // Within a twelfth of the timeout nothing is written again.
    await use(rig, body.id)
    assert.equal((await rig.get(body.id)).idle_at, used.idle_at)
  })

  test('looking at it in the API is no use of it, and neither is somebody else’s question', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ idle_timeout_seconds: SECONDS })
    await pass(rig, body.id, SECONDS / 2)
    const { idle_at } = await rig.get(body.id)
    await rig.call('GET', '/v1/sandboxes')
    await rig.call('POST', `/v1/sandboxes/${body.id}/extend`, { body: { ttl_seconds: 7_200 } })
    const stranger = await rig.newKey('acme', 'owner')
    const asked = { key_sha256: hash('sha256', stranger), sandbox_id: body.id }
    await assert.rejects(rig.gateway.post('/internal/v1/access', asked), { code: 'sandbox_not_found' })
    assert.equal((await rig.get(body.id)).idle_at, idle_at)
  })

  test('nobody is idle before looks have reached back for a lease, nor after a gap in them', async () => {
    await using rig = await startRig(postgres.current, { timing: { sweepMs: 3_600_000 } })
    await rig.host()
    await rig.settled()
    const { body } = await rig.create({ idle_timeout_seconds: SECONDS })
    await pass(rig, body.id, SECONDS)
    const { look } = lookerOf(rig)
    assert.deepEqual([await look(0), await look(STEP_MS), await look(STEP_MS)], [0, 0, 0])
    // A pause of the process.
    assert.deepEqual([await look(LIMITS.leaseMs), await look(STEP_MS), await look(STEP_MS)], [0, 0, 0])
    assert.deepEqual([await look(STEP_MS), await look(STEP_MS)], [1, 0])
    assert.equal((await rig.get(body.id)).desired, 'deleted')
  })

  test('the end of its life stops it too where it asked for that, and the end of its record deletes it', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ on_timeout: 'stop' })
    const expire = () => rig.rows('UPDATE sandglass.sandboxes SET expires_at = clock_timestamp() WHERE id = $1', [body.id])
    await expire()
    assert.match((await seen(rig, body.id, 'stopped')).status_reason ?? '', /^ttl_expired: /)
    await expire()
    await seen(rig, body.id, 'terminated')
  })

  test('a timeout within the time in which a use may go unheard is refused', async () => {
    await using rig = await startRig(postgres.current)
    assert.ok(SECONDS * 1_000 >= 2 * LIMITS.leaseMs)
    assert.equal((await rig.create({ idle_timeout_seconds: SECONDS - 1 })).problem?.code, 'invalid_request')
    assert.equal((await rig.create({ on_timeout: 'pause' })).problem?.code, 'invalid_request')
  })
})
