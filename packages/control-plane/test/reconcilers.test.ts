/**
 * What every reconciler promises: two at once, again right after, and hours late they do what one would have done in time. A row for each that the status
 * page names, except those that only tend what their own process holds.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_RESOURCES, LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { ChangeFeed } from '../src/events/change-feed.ts'
import { WakeBus } from '../src/events/wake-bus.ts'
import { HostDesk } from '../src/hosts/host-desk.ts'
import { reconcileDrains } from '../src/reconcilers/drain.ts'
import { collectEvents } from '../src/reconcilers/event-gc.ts'
import { sealAndShow } from '../src/reconcilers/event-sealer.ts'
import { collectIdempotencyKeys } from '../src/reconcilers/idempotency-gc.ts'
import { reconcileOutbox } from '../src/reconcilers/outbox-relay.ts'
import { reconcilePlacement } from '../src/reconcilers/placement.ts'
import { PoolPlanner } from '../src/reconcilers/pool-planner.ts'
import type { Outcome, ReconcilerStatus } from '../src/reconcilers/reconciler.ts'
import { reconcileReleases } from '../src/reconcilers/release.ts'
import { reconcileStarts } from '../src/reconcilers/start-convergence.ts'
import { Timeouts } from '../src/reconcilers/timeouts.ts'
import { realWorld } from '../src/world.ts'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { LeaseObserver } from './lease-observer.ts'

const postgres = usePostgres()

/** They tend memory or files of their own process; a twin has nothing to do with them. */
const OWN: ReadonlySet<string> = new Set(['event-streams', 'operation-waiters', 'template-scan', 'api-key-usage'])

type Row = {
  readonly options?: RigOptions
  /** Makes what is due, hours ago where time is part of it. @returns how many actions that is */
  readonly due: (rig: Rig) => Promise<number>
  /** One of its own, as another replica has it. */
  readonly twin: (rig: Rig) => () => Promise<Outcome>
  /** What must be true of what it leaves. */
  readonly left: (rig: Rig) => Promise<void>
}

const inner = (rig: Rig) => ({ config: rig.config, world: realWorld, db: rig.db.for('reconcilers'), desk: new HostDesk() })
const count = async (rig: Rig, sql: string): Promise<number> => (await rig.rows<{ n: number }>(`SELECT count(*)::int AS n FROM sandglass.${sql}`))[0]?.n ?? -1
const sealer = (rig: Rig) => {
  const feed = new ChangeFeed(rig.db, new WakeBus())
  return () => sealAndShow(rig.db.for('reconcilers'), feed, rig.config.timing.eventHoldMs)
}
const BIG = { vcpu: 100, memory_mb: 100_000, disk_gb: 1_000 }
const COUNT = 12

async function createMany(rig: Rig, body: object = {}): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: COUNT }, () => rig.create(body, { wait: 0 })))
  return answers.map((answer) => answer.body.id)
}

const ROWS: Readonly<Record<string, Row>> = {
  placement: {
    due: async (rig) => {
      await rig.host({ capacity: BIG, starts: ['hang'] })
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
      await createMany(rig)
      await rig.stop()
      await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
      await rig.rows('UPDATE sandglass.host_leases SET renewed_at = clock_timestamp()')
      return COUNT
    },
    twin: (rig) => () => reconcilePlacement(inner(rig)),
    left: async (rig) => assert.equal(await count(rig, 'assignments WHERE released_at IS NULL'), COUNT),
  },
  'pool-planner': {
    options: { config: { pools: { enabled: true, floors: [], ceiling: 8, memoryShare: 1 } } },
    due: async (rig) => {
      await rig.host({ capacity: BIG, acknowledges: false })
      return 1
    },
    twin: (rig) => {
      const floors = [{ driver: 'fake', template: 'base', resources: DEFAULT_RESOURCES, count: 3 }]
      const planner = new PoolPlanner({ ...inner(rig), config: { ...rig.config, pools: { ...rig.config.pools, floors } } })
      return () => planner.reconcile()
    },
    left: async (rig) => assert.deepEqual(await rig.rows('SELECT target, held, version::int FROM sandglass.pools'), [{ target: 3, held: 3, version: 1 }]),
  },
  'start-convergence': {
    due: async (rig) => {
      await rig.host({ capacity: BIG, starts: ['hang'], provesEnds: false })
      await createMany(rig)
      await until('all to be placed', async () => (await count(rig, 'assignments')) === COUNT)
      await rig.rows("UPDATE sandglass.assignments SET created_at = created_at - interval '5 h'")
      return COUNT
    },
    twin: (rig) => () => reconcileStarts(inner(rig)),
    left: async (rig) => assert.equal(await count(rig, 'sandboxes WHERE generation = 2 AND start_attempts = 1'), COUNT),
  },
  drain: {
    due: async (rig) => {
      await rig.host({ capacity: BIG, provesEnds: false })
      const ids = await createMany(rig)
      await until('all to be ready', async () => (await count(rig, "sandboxes WHERE observed = 'ready'")) === ids.length)
      await rig.rows(
        "UPDATE sandglass.host_capacity SET cordoned = true, drain_started_at = clock_timestamp() - interval '6 h', drain_deadline_at = clock_timestamp() - interval '5 h'",
      )
      return COUNT
    },
    twin: (rig) => () => reconcileDrains(inner(rig)),
    left: async (rig) => assert.equal(await count(rig, "audit_log WHERE action = 'sandbox.retire'"), COUNT),
  },
  timeouts: {
    due: async (rig) => {
      await createMany(rig)
      await rig.rows("UPDATE sandglass.sandboxes SET expires_at = created_at - interval '5 h'")
      return COUNT
    },
    twin: (rig) => {
      const timeouts = new Timeouts(inner(rig))
      return () => timeouts.reconcile()
    },
    left: async (rig) => assert.equal(await count(rig, "audit_log WHERE action = 'sandbox.delete'"), COUNT),
  },
  'host-lease-sweeper': {
    due: async (rig) => {
      for (let index = 0; index < COUNT; index += 1) await rig.host({ name: `host-${index}` })
      return COUNT
    },
    twin: (rig) => {
      const observer = new LeaseObserver(rig)
      return async () => ({ actions: await observer.watch(LIMITS.leaseMs + LIMITS.fenceGraceMs + 1_000) })
    },
    left: async (rig) => {
      assert.equal(await count(rig, 'host_leases WHERE epoch = 2 AND fenced_epoch = 1 AND holder IS NULL'), COUNT)
      assert.equal(await count(rig, "audit_log WHERE action = 'host.fence'"), COUNT)
    },
  },
  release: {
    due: async (rig) => {
      await rig.host({ capacity: BIG })
      await createMany(rig)
      await until('all to be ready', async () => (await count(rig, "sandboxes WHERE observed = 'ready'")) === COUNT)
      await rig.stop()
      await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1, holder = NULL')
      return COUNT
    },
    twin: (rig) => () => reconcileReleases(inner(rig)),
    left: async (rig) => {
      assert.equal(await count(rig, 'assignments WHERE released_at IS NULL'), 0)
      assert.deepEqual(
        await rig.rows(
          'SELECT vcpu_milli_reserved::int AS vcpu, memory_mb_reserved::int AS memory, disk_gb_reserved::int AS disk FROM sandglass.host_capacity',
        ),
        [{ vcpu: 0, memory: 0, disk: 0 }],
      )
    },
  },
  'outbox-relay': {
    due: async (rig) => {
      await rig.stop()
      await rig.rows(`INSERT INTO sandglass.outbox (origin, topic, key) SELECT 'late', 'placement', n::text FROM generate_series(1, ${COUNT}) n`)
      return COUNT
    },
    twin: (rig) => () => reconcileOutbox(inner(rig)),
    left: async (rig) => assert.equal(await count(rig, 'outbox'), 0),
  },
  'event-sealer': {
    due: async (rig) => {
      await rig.stop()
      await rig.rows(
        `INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, at) SELECT id, 'sandbox.pending', 'sbl1late', 0, clock_timestamp() - interval '5 h' FROM sandglass.tenants, generate_series(1, ${COUNT})`,
      )
      return await count(rig, 'events WHERE position IS NULL')
    },
    twin: sealer,
    left: async (rig) => assert.equal(await count(rig, 'events WHERE position IS NULL'), 0),
  },
  'event-gc': {
    due: async (rig) => {
      await createMany(rig)
      await rig.stop()
      await sealer(rig)()
      await rig.rows(`UPDATE sandglass.events SET at = at - make_interval(secs => ${2 * LIMITS.eventRetentionSeconds})`)
      return await count(rig, 'events')
    },
    twin: (rig) => () => collectEvents(rig.db.for('reconcilers')),
    left: async (rig) => assert.equal(await count(rig, 'events'), 0),
  },
  'idempotency-gc': {
    due: async (rig) => {
      await Promise.all(Array.from({ length: COUNT }, (_, index) => rig.create({}, { wait: 0, idempotencyKey: `k${index}` })))
      await rig.rows(`UPDATE sandglass.idempotency_keys SET created_at = created_at - make_interval(secs => ${2 * LIMITS.idempotencyKeyLifeSeconds})`)
      return COUNT
    },
    twin: (rig) => () => collectIdempotencyKeys(rig.db.for('reconcilers')),
    left: async (rig) => assert.equal(await count(rig, 'idempotency_keys'), 0),
  },
}

describe('reconcilers', () => {
  test('every one that works on the tables has its row here', async () => {
    await using rig = await startRig(postgres.current)
    const { body } = await rig.call<{ items: ReconcilerStatus[] }>('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })
    const names = body.items.map((item) => item.name).filter((name) => !OWN.has(name))
    assert.deepEqual(names.sort(), Object.keys(ROWS).sort())
  })

  for (const [name, row] of Object.entries(ROWS)) {
    test(`${name}: three at once, late, and once more`, async () => {
      await using rig = await startRig(postgres.current, { ...row.options, timing: { sweepMs: 3_600_000, resendMs: 3_600_000 } })
      await rig.settled()
      const due = await row.due(rig)
      assert.ok(due > 0)
      const looks = [row.twin(rig), row.twin(rig), row.twin(rig)]
      const rounds = async (): Promise<number> => {
        const outcomes = await Promise.all(looks.map((look) => look()))
        return outcomes.reduce((sum, { actions }) => sum + actions, 0)
      }
      let done = 0
      // One that was overtaken looks again.
      for (let round = 0; round < 10 && done < due; round += 1) done += await rounds()
      assert.equal(done, due)
      await row.left(rig)
      assert.equal(await rounds(), 0)
      await row.left(rig)
    })
  }
})
