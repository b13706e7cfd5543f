/** Each guard of the ownership protocol that SQL or its callers hold: its scenario passes, and fails when the guard is off. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { type Access, AccessSchema, DEFAULT_RESOURCES, parserOf } from '@sandglass/contract'
import { type SimulatedHost, type SimulatedHostOptions, until } from '@sandglass/testkit'
import { HostDesk } from '../src/hosts/host-desk.ts'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { LeaseObserver } from './lease-observer.ts'
import { type Mutation, makeMutant } from './mutant.ts'

const postgres = usePostgres()

type Guard = {
  readonly name: string
  readonly says: string
  /** Switches it off in the sources, or in the database. */
  readonly off: readonly Mutation[] | { readonly sql: string }
  readonly options?: RigOptions
  readonly scenario: (rig: Rig) => Promise<void>
}

/** Lease and grace together. */
const FENCE_MS = 40_000
/** The control plane's own observer looks when it starts, and not again. */
const STILL: RigOptions = { timing: { fencePollMs: 3_600_000 } }

type LiveAssignment = { id: string; generation: number; epoch: number; host_id: string }
const live = async (rig: Rig, sandboxId: string): Promise<LiveAssignment[]> =>
  await rig.rows('SELECT id, generation::int, epoch::int, host_id FROM sandglass.assignments WHERE sandbox_id = $1 AND released_at IS NULL', [sandboxId])
const reservedMb = async (rig: Rig): Promise<number> =>
  (await rig.rows<{ mb: number }>('SELECT sum(memory_mb_reserved)::int AS mb FROM sandglass.host_capacity'))[0]?.mb ?? 0
const quotaMb = async (rig: Rig): Promise<number> => (await rig.rows<{ mb: number }>('SELECT memory_mb_used::int AS mb FROM sandglass.quotas'))[0]?.mb ?? 0
/** A choice of placement for a sandbox of the default size. */
const choice = (sandboxId: string, generation: number, hostId: string, change: { memoryMb?: number; poolKey?: string; epoch?: number } = {}) => ({
  kind: 'place' as const,
  sandboxId,
  generation,
  hostId,
  epoch: change.epoch ?? 1,
  need: { vcpuMilli: 500, memoryMb: change.memoryMb ?? 512, diskGb: 2 },
  poolKey: change.poolKey ?? null,
})
const placementContext = (rig: Rig) => ({ world: { ...rig.modules.index.realWorld }, desk: new HostDesk() })

/** A sandbox that was retired once: its first assignment waits for a proof, and it is pending in a later generation. */
async function retired(rig: Rig): Promise<{ id: string; generation: number; hostId: string }> {
  const host = await rig.host({ starts: ['hang'], provesEnds: false })
  const { body } = await rig.create({}, { wait: 0 })
  await until('the start to be retired', async () => (await rig.get(body.id)).generation >= 2)
  return { id: body.id, generation: 2, hostId: host.id }
}

const GUARDS: readonly Guard[] = [
  {
    name: 'create.unique',
    says: 'one key makes one sandbox',
    off: [{ file: 'services/idempotency.ts', replace: 'if (await claimIdempotencyKey(tx, claim)) return', by: 'return' }],
    scenario: async (rig) => {
      const answers = await Promise.all([1, 2, 3].map(() => rig.create({}, { wait: 0, idempotencyKey: 'k' })))
      assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1)
    },
  },
  {
    name: 'create.onetx',
    says: 'a create that did not commit leaves no key behind',
    off: [{ file: 'services/create-sandbox.ts', replace: 'once(tx, {', by: 'once(context.db, {' }],
    options: { faults: failOnce('create.open') },
    scenario: async (rig) => {
      assert.equal((await rig.create({}, { wait: 0, idempotencyKey: 'k' })).status, 500)
      const second = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
      assert.equal(second.status, 202)
      assert.equal(second.headers.get('idempotency-replayed'), null)
    },
  },
  {
    name: 'place.gen',
    says: 'a plan made for an older generation is not applied',
    off: [{ file: 'store/sql/sandboxes/move.sql', replace: 'AND generation = $2', by: 'AND $2::bigint >= 0' }],
    options: { timing: { startTimeoutMs: 1, sweepMs: 20 } },
    scenario: async (rig) => {
      const { id, hostId } = await retired(rig)
      await rig.stop()
      await rig.rows("UPDATE sandglass.assignments SET released_at = clock_timestamp(), released_by = 'ended' WHERE sandbox_id = $1", [id])
      const applied = await claim(rig, choice(id, 0, hostId))
      assert.equal(applied, false)
    },
  },
  {
    name: 'place.one',
    says: 'a second assignment is not made while one is live',
    off: { sql: 'DROP INDEX sandglass.assignments_one_live' },
    options: { timing: { startTimeoutMs: 1, sweepMs: 20 } },
    scenario: async (rig) => {
      const { id, generation, hostId } = await retired(rig)
      const applied = await claim(rig, choice(id, generation, hostId))
      assert.equal(applied, false)
      assert.equal((await live(rig, id)).length, 1)
    },
  },
  {
    name: 'place.cap',
    says: 'of two choices for the last room one is refused',
    off: [
      { file: 'store/sql/hosts/reserve.sql', replace: 'AND memory_mb_reserved + $3 <= memory_mb_capacity', by: '' },
      { file: 'store/sql/hosts/reserve.sql', replace: 'AND vcpu_milli_reserved + $2 <= vcpu_milli_capacity', by: '' },
    ],
    scenario: async (rig) => {
      const host = await rig.host({ capacity: { vcpu: 1, memory_mb: 1_000, disk_gb: 10 }, starts: ['hang'] })
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
      const ids = await Promise.all([1, 2].map(async () => (await rig.create({ resources: { memory_mb: 600 } }, { wait: 0 })).body.id))
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
      const applied = await Promise.all(ids.map((id) => claim(rig, choice(id, 0, host.id, { memoryMb: 600 }))))
      assert.ok(applied.includes(false))
      assert.equal(await reservedMb(rig), 600)
    },
  },
  {
    name: 'place.sum',
    says: 'what is placed on a host together is reserved together',
    off: [{ file: 'services/place-sandbox.ts', replace: 'inOrder.map(reservedFor)', by: 'inOrder.slice(0, 1).map(reservedFor)' }],
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'] })
      await cordon(rig, host.id)
      const ids = await Promise.all([1, 2, 3].map(async () => (await rig.create({}, { wait: 0 })).body.id))
      await operate(rig, `${host.id}/uncordon`)
      await until('all to be placed', async () => (await Promise.all(ids.map((id) => live(rig, id)))).every((one) => one.length === 1))
      assert.equal(await reservedMb(rig), 3 * 512)
    },
  },
  {
    name: 'place.turn',
    says: 'one tenant’s burst does not take the turn of another one’s single create',
    off: [{ file: 'domain/placement/fair-order.ts', replace: 'share(line.holds, fleet) / line.weight - aged(head)', by: '-head.ageMs' }],
    scenario: async (rig) => {
      const host = await rig.host({ capacity: { vcpu: 4, memory_mb: 1_024, disk_gb: 100 }, starts: ['hang'] })
      await cordon(rig, host.id)
      for (let count = 0; count < 4; count += 1) await rig.create({}, { wait: 0 })
      const single = (await rig.create({}, { wait: 0, key: await rig.newKey('other', 'member') })).body.id
      await operate(rig, `${host.id}/uncordon`)
      await until('the room to be given away', async () => (await reservedMb(rig)) === 1_024)
      assert.equal((await live(rig, single)).length, 1)
    },
  },
  {
    name: 'quota.take',
    says: 'a create past the quota is refused',
    off: [{ file: 'store/sql/quotas/take.sql', replace: 'AND running_sandboxes_used + 1 <= running_sandboxes_limit', by: '' }],
    scenario: async (rig) => {
      await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 2')
      const answers = await Promise.all(Array.from({ length: 6 }, () => rig.create({}, { wait: 0 })))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [202, 202, 429, 429, 429, 429])
    },
  },
  {
    name: 'quota.back',
    says: 'a quota is given back once, however often an end is told',
    off: [{ file: 'store/sql/sandboxes/drop-quota.sql', replace: 'AND quota_held', by: '' }],
    scenario: async (rig) => {
      await rig.host()
      const [first, second] = [(await rig.create()).body.id, (await rig.create()).body.id]
      await rig.run('stop', first)
      await rig.db.transaction(async (tx) => {
        const row = await rig.modules.sandboxes.lockSandbox(tx, first)
        if (row !== undefined) await rig.modules.quotas.giveQuotaBack(tx, row, 'kept')
      })
      assert.deepEqual([await quotaMb(rig), (await live(rig, second)).length], [512, 1])
    },
  },
  {
    name: 'bump.delete',
    says: 'a delete makes a start that is on its way stale',
    off: [
      {
        file: 'domain/sandbox/transitions.ts',
        replace: "to: 'terminating', desired: 'deleted', generation: 'next'",
        by: "to: 'terminating', desired: 'deleted', generation: 'same'",
      },
    ],
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'], provesEnds: false })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the ticket', () => host.starts[0])
      await rig.remove(body.id, 0)
      assert.equal((await rig.get(body.id)).generation, 2)
      assert.deepEqual(await host.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    },
  },
  {
    name: 'bump.stop',
    says: 'a stop makes a start that is on its way stale',
    off: [
      {
        file: 'domain/sandbox/transitions.ts',
        replace: "to: 'stopping', desired: 'stopped', generation: 'next'",
        by: "to: 'stopping', desired: 'stopped', generation: 'same'",
      },
    ],
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'], provesEnds: false })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the ticket', () => host.starts[0])
      await rig.run('stop', body.id, { wait: 0 })
      assert.equal((await rig.get(body.id)).generation, 2)
      assert.deepEqual(await host.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    },
  },
  {
    name: 'stop.proof',
    says: 'a stop keeps what it holds until its end is proved',
    off: [{ file: 'services/run-sandbox.ts', replace: 'planStop(row.observed, assignment !== undefined)', by: 'planStop(row.observed, false)' }],
    scenario: async (rig) => {
      const host = await rig.host({ provesEnds: false })
      const { body } = await rig.create()
      await rig.run('stop', body.id, { wait: 0 })
      assert.equal((await rig.get(body.id)).status, 'stopping')
      assert.deepEqual([await reservedMb(rig), await quotaMb(rig)], [512, 512])
      await host.ended(body.id, (await rig.get(body.id)).generation)
      assert.deepEqual([await reservedMb(rig), await quotaMb(rig)], [0, 0])
    },
  },
  {
    name: 'quota.once',
    says: 'a start takes no quota while the end of the run before still holds it',
    off: [{ file: 'store/quotas.ts', replace: 'if (await holdQuotaMark(tx, row.id)) await takeQuota', by: 'await takeQuota' }],
    scenario: async (rig) => {
      await rig.host({ provesEnds: false })
      const { body } = await rig.create()
      await rig.run('stop', body.id, { wait: 0 })
      assert.equal((await rig.run('start', body.id, { wait: 0 })).status, 202)
      assert.equal(await quotaMb(rig), 512)
    },
  },
  {
    name: 'restart.gen',
    says: 'a restart by policy makes what the ended runtime says stale',
    off: [
      {
        file: 'domain/sandbox/transitions.ts',
        replace: "restart: { from: ['assigned', 'starting', 'ready'], to: 'pending', desired: 'running', generation: 'next'",
        by: "restart: { from: ['assigned', 'starting', 'ready'], to: 'pending', desired: 'running', generation: 'same'",
      },
    ],
    options: { timing: { restartBaseMs: 60_000 } },
    scenario: async (rig) => {
      const host = await rig.host()
      const { body } = await rig.create({ restart_policy: 'always' })
      await host.ended(body.id, body.generation, 'runtime_exited')
      assert.equal((await rig.get(body.id)).generation, body.generation + 1)
    },
  },
  {
    name: 'retire',
    says: 'a start that was given up is stale',
    off: [
      {
        file: 'domain/sandbox/transitions.ts',
        replace: "to: 'pending', desired: 'running', generation: 'next'",
        by: "to: 'pending', desired: 'running', generation: 'same'",
      },
    ],
    options: { timing: { startTimeoutMs: 1, sweepMs: 20 } },
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'], provesEnds: false })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the start to be given up', async () => (await rig.get(body.id)).status_reason !== null)
      assert.deepEqual(await host.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    },
  },
  {
    name: 'release.proof',
    says: 'a start that takes too long keeps its amounts until its end is proved',
    off: [
      { file: 'reconcilers/start-convergence.ts', replace: 'import { lockLiveAssignment,', by: 'import { releaseAssignment, lockLiveAssignment,' },
      {
        file: 'reconcilers/start-convergence.ts',
        replace: '      return true',
        by: "      await releaseAssignment(tx, assignment, 'ended')\n      return true",
      },
    ],
    options: { timing: { startTimeoutMs: 1, sweepMs: 20 } },
    scenario: async (rig) => {
      const { id, generation } = await retired(rig)
      assert.deepEqual(
        (await live(rig, id)).map((assignment) => assignment.generation),
        [1],
      )
      const [host] = rig.hosts
      await until('an end order', () => host?.ends[0])
      assert.equal(await reservedMb(rig), 512)
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
      await host?.ended(id, generation)
      assert.equal(await reservedMb(rig), 0)
    },
  },
  {
    name: 'ended.gen',
    says: 'the end of a lower generation releases nothing',
    off: [{ file: 'services/runtime-release.ts', replace: 'if (assignment.generation > proof.upto)', by: 'if (assignment.generation < 0)' }],
    scenario: async (rig) => {
      const host = await rig.host()
      const { body } = await rig.create()
      assert.deepEqual(await host.ended(body.id, body.generation - 1), { outcome: 'stale', code: 'stale_generation' })
      assert.equal((await rig.get(body.id)).status, 'ready')
      assert.equal(await reservedMb(rig), 512)
    },
  },
  {
    name: 'rf.gen',
    says: 'release by fence takes the assignment that was read, not the one that is live by now',
    off: [{ file: 'services/runtime-release.ts', replace: 'assignment.id !== read.assignmentId', by: 'assignment.id === undefined' }],
    scenario: async (rig) => {
      await rig.host()
      const { body } = await rig.create()
      await rig.stop()
      await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1')
      const read = { assignmentId: 'as2222222222222222', sandboxId: body.id }
      assert.equal(await rig.db.transaction((tx) => rig.modules.release.releaseByFence(tx, read, rig.config.timing)), false)
      assert.equal((await live(rig, body.id)).length, 1)
    },
  },
  {
    name: 'rf.epoch',
    says: 'what the host holds in its present epoch is not fenced',
    off: [{ file: 'services/runtime-release.ts', replace: 'assignment.epoch >= lease.epoch', by: 'assignment.epoch > lease.epoch' }],
    scenario: async (rig) => {
      await rig.host()
      const { body } = await rig.create()
      const [assignment] = await live(rig, body.id)
      const read = { assignmentId: assignment?.id ?? '', sandboxId: body.id }
      assert.equal(await rig.db.transaction((tx) => rig.modules.release.releaseByFence(tx, read, rig.config.timing)), false)
      assert.equal((await live(rig, body.id)).length, 1)
    },
  },
  {
    name: 'ready.gen',
    says: 'ready is taken for the current generation only',
    off: [{ file: 'hosts/reports.ts', replace: ' || row.generation !== report.generation', by: '' }],
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'], provesEnds: false })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the ticket', () => host.starts[0])
      await rig.remove(body.id, 0)
      assert.deepEqual(await host.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    },
  },
  {
    name: 'ready.epoch',
    says: 'ready is taken in the current epoch of the host only',
    off: [
      { file: 'hosts/reports.ts', replace: 'if (epoch !== undefined && source.epoch !== epoch)', by: 'if (epoch !== undefined && source.epoch < 0)' },
      { file: 'hosts/reports.ts', replace: 'if (assignment.epoch !== epoch)', by: 'if (epoch === undefined)' },
    ],
    options: { timing: { sweepMs: 3_600_000 } },
    scenario: async (rig) => {
      // What looks for the end of epochs has looked, and leaves the next one to the report.
      await rig.settled()
      const host = await rig.host({ starts: ['hang'] })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the ticket', () => host.starts[0])
      await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1')
      await assert.rejects(host.ready(body.id, 1), { code: 'stale_epoch' })
    },
  },
  {
    name: 'late.once',
    says: 'a late report is in the audit log once, by however many it is told at once',
    off: { sql: 'DROP INDEX sandglass.audit_log_late_reports' },
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'], provesEnds: false })
      const { body } = await rig.create({}, { wait: 0 })
      await until('the ticket', () => host.starts[0])
      await rig.remove(body.id, 0)
      for (const answer of await Promise.all([1, 2, 3].map(() => host.ready(body.id, 1)))) assert.equal(answer?.outcome, 'stale')
      assert.equal((await rig.rows("SELECT FROM sandglass.audit_log WHERE action = 'report.late'")).length, 1)
    },
  },
  {
    name: 'mint.read',
    says: 'the term of a ticket is the lease sequence of the read that found the assignment',
    off: [{ file: 'hosts/order-lines.ts', replace: 'term: row.seq, amounts', by: 'term: row.seq + 6, amounts' }],
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'] })
      await host.renew()
      const { seq } = await host.renew()
      await rig.create({}, { wait: 0 })
      const { ticket } = await until('the ticket', () => host.starts[0])
      assert.equal(ticket.term, seq)
      assert.equal(ticket.epoch, 1)
    },
  },
  {
    name: 'claim.tgt',
    says: 'a claim takes a unit only while the target has one',
    off: [{ file: 'store/sql/assignments/insert-claimed.sql', replace: 'AND p.target >= 1', by: '' }],
    options: pooled(1),
    scenario: async (rig) => {
      const { key, hostId, ids } = await claimable(rig, 2)
      const [first = '', second = ''] = ids
      assert.equal(await claim(rig, choice(first, 0, hostId, { poolKey: key })), true)
      assert.equal(await claim(rig, choice(second, 0, hostId, { poolKey: key })), false)
      assert.deepEqual(await poolRows(rig), [{ target: 0, held: 0 }])
      assert.equal(await reservedMb(rig), 512)
    },
  },
  {
    name: 'claim.epoch',
    says: 'a claim takes a unit only of a pool of the planned epoch',
    off: [{ file: 'store/sql/assignments/insert-claimed.sql', replace: 'AND p.epoch = $4', by: '' }],
    options: pooled(1),
    scenario: async (rig) => {
      const { key, hostId, ids } = await claimable(rig, 1)
      // The host began anew; its pools are not fenced yet.
      await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1')
      assert.equal(await claim(rig, choice(ids[0] ?? '', 0, hostId, { poolKey: key, epoch: 2 })), false)
      assert.deepEqual(await poolRows(rig), [{ target: 1, held: 1 }])
    },
  },
  {
    name: 'claim.cordon',
    says: 'nothing is claimed on a cordoned host',
    off: [{ file: 'store/sql/hosts/reserve.sql', replace: 'AND NOT cordoned', by: '' }],
    options: pooled(1),
    scenario: async (rig) => {
      const { key, hostId, ids } = await claimable(rig, 1)
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
      assert.equal(await claim(rig, choice(ids[0] ?? '', 0, hostId, { poolKey: key })), false)
      assert.deepEqual(await poolRows(rig), [{ target: 1, held: 1 }])
    },
  },
  {
    name: 'place.cordon',
    says: 'nothing is placed on a cordoned host, by the statement that reserves',
    off: [{ file: 'store/sql/hosts/reserve.sql', replace: 'AND NOT cordoned', by: '' }],
    scenario: async (rig) => {
      const { id: hostId } = await rig.host()
      await cordon(rig, hostId)
      const { id } = (await rig.create({}, { wait: 0 })).body
      await rig.stop()
      assert.equal(await claim(rig, choice(id, 0, hostId)), false)
      assert.equal(await reservedMb(rig), 0)
    },
  },
  {
    name: 'drain.live',
    says: 'a drain that was called off retires nothing, however late its plan is applied',
    off: [{ file: 'store/sql/hosts/lock-drain.sql', replace: 'AND drain_started_at IS NOT NULL', by: '' }],
    options: { timing: { sweepMs: 60_000 } },
    scenario: async (rig) => {
      const host = await rig.host({ starts: ['hang'] })
      const { id } = (await rig.create({}, { wait: 0 })).body
      await until('its ticket', () => host.starts[0])
      const holder = await rig.sql.connect()
      try {
        await holder.query('BEGIN')
        await holder.query('SELECT FROM sandglass.sandboxes WHERE id = $1 FOR UPDATE', [id])
        await operate(rig, `${host.id}/drain`, {})
        await until('the drain to wait for the row', async () => (await rig.rows(WAITS_FOR_A_SANDBOX))[0])
        await operate(rig, `${host.id}/uncordon`)
        await holder.query('COMMIT')
      } finally {
        holder.release()
      }
      await until('the drain to have looked', async () => !(await drainStatus(rig)).running)
      assert.equal((await drainStatus(rig)).actions, 0)
      assert.equal((await rig.get(id)).generation, 1)
    },
  },
  {
    name: 'remove.empty',
    says: 'a host is removed only when nothing is assigned to it',
    off: [{ file: 'services/operate-hosts.ts', replace: 'if (live > 0) throw inUse(host, live, wanted)', by: 'void [inUse, live, wanted]' }],
    scenario: async (rig) => {
      const { id } = await rig.host()
      await rig.create()
      assert.equal((await rig.call('DELETE', `/v1/hosts/${id}`, { key: rig.keys.operator })).problem?.code, 'host_in_use')
    },
  },
  {
    name: 'remove.lease',
    says: 'a removed host holds no lease',
    off: [{ file: 'store/sql/hosts/end-lease.sql', replace: 'SET holder = NULL, epoch = epoch + 1', by: 'SET holder = holder' }],
    scenario: async (rig) => {
      const host = await rig.host()
      assert.equal((await rig.call('DELETE', `/v1/hosts/${host.id}`, { key: rig.keys.operator })).status, 204)
      assert.deepEqual(await rig.rows('SELECT holder FROM sandglass.host_leases'), [{ holder: null }])
    },
  },
  {
    name: 'remove.epoch',
    says: 'the epoch of a removed host is over, and with it what its pools hold',
    off: [{ file: 'store/sql/hosts/end-lease.sql', replace: ', epoch = epoch + 1', by: '' }],
    options: pooled(1),
    scenario: async (rig) => {
      const { host } = await joinPooled(rig)
      assert.equal((await rig.call('DELETE', `/v1/hosts/${host.id}`, { key: rig.keys.operator })).status, 204)
      assert.deepEqual(await rig.rows('SELECT epoch::int FROM sandglass.host_leases'), [{ epoch: 2 }])
      await until('its pool to be empty', async () => (await reservedMb(rig)) === 0, 3_000)
    },
  },
  {
    name: 'fence.cas',
    says: 'a host that renews behind the plan is not fenced',
    off: [{ file: 'store/sql/hosts/fence.sql', replace: 'AND epoch = $2 AND seq = $3', by: 'AND $2::bigint >= 0 AND $3::bigint >= 0' }],
    options: STILL,
    scenario: async (rig) => {
      const host = await rig.host()
      const faults = { reach: async (point: string) => void (point === 'fence.planned' && (await host.renew())) }
      const observer = new LeaseObserver(rig, { faults })
      await observer.look()
      assert.equal(await observer.watch(FENCE_MS), 0)
      assert.deepEqual(await host.renew(), { epoch: 1, seq: 3 })
    },
  },
  {
    name: 'fence.read',
    says: 'an observer counts from the answer of its read',
    off: [{ file: 'reconcilers/host-lease-sweeper.ts', replace: 'const answeredAtMs = world.monotonicMs()', by: 'const answeredAtMs = askedAtMs' }],
    options: STILL,
    scenario: async (rig) => {
      await rig.host()
      let tookMs = 8_000
      const db: ConstructorParameters<typeof LeaseObserver>[1] = {
        db: {
          run: async (statement, values) => {
            const rows = await rig.db.run(statement, values)
            observer.nowMs += tookMs
            tookMs = 0
            return rows
          },
          transaction: (work) => rig.db.transaction(work),
        },
      }
      const observer = new LeaseObserver(rig, db)
      await observer.look()
      assert.equal(await observer.watch(FENCE_MS - 1), 0)
      assert.equal(await observer.look(1), 1)
    },
  },
  {
    name: 'fence.grace',
    says: 'a fence waits for the grace behind the lease',
    off: [{ file: 'reconcilers/host-lease-sweeper.ts', replace: 'leaseMs + fenceGraceMs', by: 'leaseMs + 0 * fenceGraceMs' }],
    options: STILL,
    scenario: async (rig) => {
      await rig.host()
      const observer = new LeaseObserver(rig)
      await observer.look()
      assert.equal(await observer.watch(FENCE_MS - 1), 0)
    },
  },
  {
    name: 'fence.clock',
    says: 'a fence waits on the monotonic clock of its observer, whatever wall clocks are set to',
    off: [{ file: 'reconcilers/host-lease-sweeper.ts', replace: 'world.monotonicMs()', by: 'world.wallMs()' }],
    options: STILL,
    scenario: async (rig) => {
      await rig.host()
      const observer = new LeaseObserver(rig)
      await observer.look()
      await observer.watch(FENCE_MS - 1)
      observer.wallMs += FENCE_MS
      await rig.rows("UPDATE sandglass.host_leases SET renewed_at = renewed_at - interval '5 h'")
      assert.equal(await observer.look(), 0)
      assert.equal(await observer.look(1), 1)
    },
  },
  {
    name: 'fence.gap',
    says: 'an observer that did not look for long counts anew',
    off: [{ file: 'domain/host/fencing.ts', replace: '<= bounds.gapMs', by: '<= Number.POSITIVE_INFINITY' }],
    options: STILL,
    scenario: async (rig) => {
      await rig.host()
      const observer = new LeaseObserver(rig)
      await observer.look()
      assert.equal(await observer.look(FENCE_MS), 0)
    },
  },
  {
    name: 'fence.usage',
    says: 'usage on a fenced host ends with the fence, not with a release that comes later',
    off: [{ file: 'services/fence-host.ts', replace: 'await closeUsageOfEpochs(tx, seen.hostId)', by: 'void closeUsageOfEpochs' }],
    options: { timing: { fencePollMs: 3_600_000, sweepMs: 3_600_000 } },
    scenario: async (rig) => {
      await rig.settled()
      await rig.host()
      const { id } = (await rig.create()).body
      const observer = new LeaseObserver(rig)
      await observer.look()
      assert.equal(await observer.watch(FENCE_MS), 1)
      assert.equal((await live(rig, id)).length, 1)
      assert.deepEqual(await rig.rows('SELECT closed_at IS NOT NULL AS closed FROM sandglass.usage_intervals'), [{ closed: true }])
    },
  },
  {
    name: 'place.held',
    says: 'nothing is placed in an epoch that nobody holds',
    off: [{ file: 'store/sql/assignments/insert.sql', replace: 'AND epoch = $4 AND holder IS NOT NULL', by: 'AND epoch = $4' }],
    options: STILL,
    scenario: async (rig) => {
      const host = await rig.host()
      await cordon(rig, host.id)
      const { id } = (await rig.create({}, { wait: 0 })).body
      const observer = new LeaseObserver(rig)
      await observer.look()
      assert.equal(await observer.watch(FENCE_MS), 1)
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
      assert.equal(await claim(rig, choice(id, 0, host.id, { epoch: 2 })), false)
      assert.equal(await reservedMb(rig), 0)
    },
  },
  {
    name: 'pool.epoch',
    says: 'a pool order carries the epoch that it was made for',
    off: [{ file: 'hosts/order-lines.ts', replace: 'host: hostId, epoch, key', by: 'host: hostId, epoch: epoch + 1, key' }],
    options: pooled(2),
    scenario: async (rig) => {
      const host = await rig.host()
      const order = await until('a pool order', () => host.pools.orders[0])
      assert.equal(order.epoch, 1)
    },
  },
  {
    name: 'pool.ack',
    says: 'units are freed by the acknowledgement of the current version only',
    off: [{ file: 'store/sql/pools/acknowledge.sql', replace: 'AND version = $3', by: 'AND $3::bigint >= 0' }],
    options: pooled(2),
    scenario: async (rig) => {
      const host = await rig.host({ acknowledges: false })
      const { key, version, target } = await until('a pool order', () => host.pools.orders[0])
      assert.equal(target, 2)
      // The planner, which each unit that comes free wakes, leaves the pools of a host alone that has not been heard of.
      await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '1 h'")
      const at = { hostId: host.id, key, epoch: 1, version }
      assert.equal(await rig.db.transaction((tx) => rig.modules.pools.resizePool(tx, at, 1)), true)
      await host.report([{ type: 'pool', key, version }])
      assert.deepEqual(await poolRows(rig), [{ target: 1, held: 2 }])
      assert.equal(await reservedMb(rig), 1_024)
      await host.report([{ type: 'pool', key, version: version + 1 }])
      assert.deepEqual(await poolRows(rig), [{ target: 1, held: 1 }])
      assert.equal(await reservedMb(rig), 512)
    },
  },
  {
    name: 'pool.ticket',
    says: 'the ticket and the end order of a claim carry what it made of the pool',
    off: [{ file: 'hosts/order-lines.ts', replace: 'if (key === null) return null', by: 'if (key !== undefined) return null' }],
    options: pooled(1),
    scenario: async (rig) => {
      const { host, key } = await joinPooled(rig)
      const { body } = await rig.create()
      assert.equal(body.start_path, 'claimed')
      assert.deepEqual(host.starts[0]?.ticket.pool, { key, version: 2, target: 0 })
      await rig.remove(body.id)
      assert.deepEqual(host.ends[0]?.pool, { epoch: 1, position: { key, version: 2, target: 0 } })
    },
  },
  {
    name: 'ended.pool',
    says: 'a claim is released only when the host has stored what it made of the pool',
    off: [
      {
        file: 'services/runtime-release.ts',
        replace: '(proof.poolVersion ?? -1) < assignment.pool_version',
        by: 'Number.POSITIVE_INFINITY < assignment.pool_version',
      },
    ],
    options: pooled(1),
    scenario: async (rig) => {
      const { host } = await joinPooled(rig, { provesEnds: false })
      const { body } = await rig.create()
      await rig.remove(body.id, 0)
      const ended = { type: 'ended', sandbox: body.id, upto: 2, reason: 'ordered', detail: null } as const
      for (const pool_version of [null, 1]) {
        assert.deepEqual(await host.report([{ ...ended, pool_version }]), [{ outcome: 'accepted', code: null }])
        assert.equal((await live(rig, body.id)).length, 1)
      }
      await host.report([{ ...ended, pool_version: 2 }])
      assert.equal((await live(rig, body.id)).length, 0)
    },
  },
  {
    name: 'register.cas',
    says: 'a host registers only from the epoch that it holds',
    off: [{ file: 'store/sql/hosts/register.sql', replace: 'AND (epoch = $2 OR (epoch = $2 + 1 AND holder = $3))', by: '' }],
    scenario: async (rig) => {
      const host = await rig.host()
      await host.reboot()
      assert.equal(host.epoch, 2)
      await assert.rejects(host.register(0), { code: 'stale_epoch' })
    },
  },
  {
    name: 'renew.epoch',
    says: 'a lease is renewed only in its present epoch and by its holder',
    off: [{ file: 'store/sql/hosts/renew.sql', replace: 'AND epoch = $2 AND holder = $3', by: 'AND $2::bigint >= 0 AND $3::text IS NOT NULL' }],
    scenario: async (rig) => {
      const host = await rig.host()
      await host.reboot()
      await assert.rejects(host.renew(1), { code: 'stale_epoch' })
      await assert.rejects(host.renew(2, 'another-boot'), { code: 'stale_epoch' })
    },
  },
  {
    name: 'renew.durable',
    says: 'a renewal is answered behind its commit, not before',
    off: [
      {
        file: 'hosts/host-routes.ts',
        replace: 'const lease = await renewLease(db, hostId, epoch, boot_id)',
        by: 'const lease = { epoch, seq: 0 }; void renewLease(db, hostId, epoch, boot_id)',
      },
    ],
    scenario: async (rig) => {
      const host = await rig.host()
      const holder = await rig.sql.connect()
      try {
        await holder.query('BEGIN')
        await holder.query('SELECT FROM sandglass.host_leases FOR UPDATE')
        let answered = false
        const renewing = host.renew().finally(() => (answered = true))
        await until('the renewal to wait', async () => (await rig.rows(WAITS_FOR_A_LEASE))[0])
        // Whatever is answered without waiting for it is answered before this.
        await rig.call('GET', '/healthz')
        assert.equal(answered, false)
        await holder.query('COMMIT')
        const { seq } = await renewing
        assert.deepEqual(await rig.rows('SELECT seq::int FROM sandglass.host_leases'), [{ seq }])
      } finally {
        await holder.query('ROLLBACK')
        holder.release()
      }
    },
  },
  {
    name: 'route.lease',
    says: 'a route is valid no longer than the lease has left',
    off: [{ file: 'store/sql/routes/read.sql', replace: '- extract(epoch FROM clock_timestamp() - l.renewed_at) * 1000', by: '' }],
    scenario: async (rig) => {
      await rig.host()
      const { id } = (await rig.create()).body
      await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '25 s'")
      const route = await routeTo(rig, id)
      assert.ok(route !== null && route.valid_for_ms > 0 && route.valid_for_ms <= 5_000, JSON.stringify(route))
      await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '31 s'")
      assert.equal(await routeTo(rig, id), null)
    },
  },
  {
    name: 'route.seen',
    says: 'a route is valid no longer than an observer saw the lease to last, wherever the clock of the database is set to',
    off: [{ file: 'internal/access.ts', replace: 'route === null || leftMs === undefined', by: 'route === null || leftMs !== null' }],
    options: { timing: { fencePollMs: 20 }, world: { monotonicMs: () => performance.now() + aheadMs } },
    scenario: async (rig) => {
      aheadMs = 0
      const host = await rig.host()
      const { id } = (await rig.create()).body
      await until('its renewal to be seen', async () => {
        await host.renew()
        await rig.rows("UPDATE sandglass.host_leases SET renewed_at = renewed_at + interval '5 h'")
        const route = await routeTo(rig, id)
        return route !== null && route.valid_for_ms < 30_000
      })
      assert.ok(((await routeTo(rig, id))?.valid_for_ms ?? 0) > 20_000)
      aheadMs = 25_000
      const valid = (await routeTo(rig, id))?.valid_for_ms ?? 0
      assert.ok(valid > 0 && valid <= 5_000, String(valid))
      aheadMs = 31_000
      assert.equal(await routeTo(rig, id), null)
      // A renewal counts from the look before the one that shows it, and that may be one of before the clock went on.
      await until('a longer route', async () => {
        await host.renew()
        return ((await routeTo(rig, id))?.valid_for_ms ?? 0) > 20_000
      })
    },
  },
]

/** Of the monotonic clock of a control plane under test. */
let aheadMs = 0

/** As a gateway is told. */
async function routeTo(rig: Rig, sandboxId: string): Promise<Access['route']> {
  const body = { key_sha256: createHash('sha256').update(rig.keys.member).digest('hex'), sandbox_id: sandboxId }
  return parserOf(AccessSchema).parse(await rig.gateway.post('/internal/v1/access', body)).route
}

const operate = async (rig: Rig, path: string, body?: unknown): Promise<void> => {
  const answer = await rig.call('POST', `/v1/hosts/${path}`, { key: rig.keys.operator, ...(body === undefined ? {} : { body }) })
  assert.ok(answer.status < 300, answer.problem?.detail)
}
const cordon = (rig: Rig, hostId: string): Promise<void> => operate(rig, `${hostId}/cordon`)
const WAITS_FOR_A_SANDBOX = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sandglass.sandboxes%'"
const WAITS_FOR_A_LEASE = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sandglass.host_leases%'"
async function drainStatus(rig: Rig): Promise<{ running: boolean; actions: number }> {
  type Statuses = { items: { name: string; running: boolean; actions: number }[] }
  const { items } = (await rig.call<Statuses>('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })).body
  return items.find(({ name }) => name === 'drain') ?? assert.fail('there is no reconciler of drains')
}

/** A control plane that keeps members for the default size. Its planner looks when it is woken, not by itself. */
function pooled(count: number): RigOptions {
  const floors = [{ driver: 'fake', template: 'base', resources: DEFAULT_RESOURCES, count }]
  return { config: { pools: { enabled: true, floors, ceiling: 0, memoryShare: 1 } }, timing: { sweepMs: 60_000 } }
}

type Pooled = { host: SimulatedHost; key: string }
async function joinPooled(rig: Rig, options: Partial<SimulatedHostOptions> = {}): Promise<Pooled> {
  const host = await rig.host(options)
  const { key } = await until('a pool order', () => host.pools.orders[0])
  await until('its acknowledgement', async () => (await rig.rows('SELECT FROM sandglass.pools WHERE acked_version = version'))[0])
  return { host, key }
}

/** A pool that nobody looks after any more, and sandboxes that could claim of it. */
async function claimable(rig: Rig, count: number): Promise<{ key: string; hostId: string; ids: string[] }> {
  const { host, key } = await joinPooled(rig)
  await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
  const ids = await Promise.all(Array.from({ length: count }, async () => (await rig.create({}, { wait: 0 })).body.id))
  await rig.stop()
  // A planner that saw the cordon may have begun to empty the pool.
  await rig.rows('UPDATE sandglass.pools SET target = 1, held = 1, version = version + 1')
  await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false, memory_mb_reserved = 512, disk_gb_reserved = 2')
  return { key, hostId: host.id, ids }
}

/** As a scheduler applies it. @returns whether nothing had overtaken the choice */
const claim = async (rig: Rig, place: ReturnType<typeof choice>): Promise<boolean> =>
  (await rig.db.transaction((tx) => rig.modules.placement.placeEach(tx, placementContext(rig), [place]))).length === 1
const poolRows = async (rig: Rig) => await rig.rows('SELECT target, held FROM sandglass.pools')

function failOnce(point: string) {
  let left = 1
  return {
    reach(reached: string) {
      if (reached !== point || left === 0) return
      left -= 1
      throw new Error(`fault at ${point}`)
    },
  }
}

for (const { name, says, off, options, scenario } of GUARDS) {
  test(`${name}: ${says}`, async () => {
    await using rig = await startRig(postgres.current, fresh(options))
    await scenario(rig)
  })

  test(`${name} off: its test goes red`, async () => {
    const mutations = 'sql' in off ? [] : off
    using mutant = makeMutant(mutations)
    await using rig = await startRig(postgres.current, { ...fresh(options), source: mutant.source })
    if ('sql' in off) await rig.rows(off.sql)
    await assert.rejects(scenario(rig))
  })
}

/** Faults count; each run gets its own. */
const fresh = (options: RigOptions = {}): RigOptions => (options.faults === undefined ? options : { ...options, faults: failOnce('create.open') })
