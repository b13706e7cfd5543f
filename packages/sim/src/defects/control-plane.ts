/** Deliberate defects of the control plane: its guards, each switched off, by their names in the ownership protocol or in control-plane/test/guards.test.ts. */
import type { Replacement } from '../loading/hooks.ts'
import { BUSY_POOLS, LATE, OLD } from './focuses.ts'
import type { Defect } from './search.ts'

const src = (file: string, replace: string, by: string): Replacement => ({ file: `control-plane/src/${file}`, replace, by })
const sql = (file: string, replace: string, by: string): Replacement => src(`store/sql/${file}.sql`, replace, by)
const NONE_LIVE = 'AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)'
const POOLS = { poolFloor: 2 } as const

export const CONTROL_PLANE_GUARDS: readonly Defect[] = [
  {
    name: 'create.unique',
    says: 'a key makes a sandbox each time',
    off: [src('services/idempotency.ts', 'if (await claimIdempotencyKey(tx, claim)) return', 'return')],
  },
  { name: 'create.onetx', says: 'the key is committed without the create', off: [src('services/create-sandbox.ts', 'once(tx, {', 'once(context.db, {')] },
  {
    name: 'create.ack',
    says: 'a create is answered before its commit',
    off: [
      src(
        'store/database.ts',
        'await (committing ?? commit(client, tx, this.#options.origin, wakes))',
        'void (committing ?? commit(client, tx, this.#options.origin, wakes)).catch(() => undefined)',
      ),
    ],
  },
  {
    name: 'place.gen',
    says: 'a plan for an older generation is applied',
    off: [
      sql('sandboxes/move', 'AND generation = $2', 'AND $2::bigint >= 0'),
      src('domain/sandbox/transitions.ts', "place: { from: ['pending']", "place: { from: ['pending', 'stopped', 'terminated', 'failed']"),
    ],
  },
  {
    name: 'place.one',
    says: 'a second assignment is made while one is live',
    sql: 'DROP INDEX sandglass.assignments_one_live',
    off: ['queue', 'lock-pending', 'aged-pending'].map((file) => sql(`sandboxes/${file}`, NONE_LIVE, '')),
  },
  {
    name: 'place.cap',
    says: 'more is reserved than there is',
    off: [
      sql('hosts/reserve', 'AND memory_mb_reserved + $3 <= memory_mb_capacity', ''),
      sql('hosts/reserve', 'AND vcpu_milli_reserved + $2 <= vcpu_milli_capacity', ''),
    ],
    sql: 'ALTER TABLE sandglass.host_capacity DROP CONSTRAINT host_capacity_check1',
    focus: {
      hosts: 1,
      replicas: 2,
      room: [2],
      sandboxes: 6,
      quota: 8,
      paceMs: 300,
      poolFloor: 0,
      everyMs: { partition: 0, agentPause: 0, reboot: 0, fullDisk: 0 },
    },
  },
  {
    name: 'bump.delete',
    says: 'a delete leaves the generation alone',
    off: [
      src(
        'domain/sandbox/transitions.ts',
        "to: 'terminating', desired: 'deleted', generation: 'next'",
        "to: 'terminating', desired: 'deleted', generation: 'same'",
      ),
    ],
  },
  {
    name: 'bump.stop',
    says: 'a stop leaves the generation alone',
    off: [
      src('domain/sandbox/transitions.ts', "to: 'stopping', desired: 'stopped', generation: 'next'", "to: 'stopping', desired: 'stopped', generation: 'same'"),
    ],
  },
  {
    name: 'stop.proof',
    says: 'a stop gives back what still runs',
    off: [
      src('services/run-sandbox.ts', ': planStop(row.observed, assignment !== undefined)', ': planStop(row.observed, false)'),
      src('services/run-sandbox.ts', '= planStop(row.observed, assignment !== undefined)', '= planStop(row.observed, false)'),
    ],
  },
  {
    name: 'quota.once',
    says: 'a start takes quota that is held still',
    off: [src('store/quotas.ts', 'if (await holdQuotaMark(tx, row.id)) await takeQuota', 'await takeQuota')],
  },
  {
    name: 'restart.gen',
    says: 'a restart leaves the generation alone',
    off: [
      src(
        'domain/sandbox/transitions.ts',
        "restart: { from: ['assigned', 'starting', 'ready'], to: 'pending', desired: 'running', generation: 'next'",
        "restart: { from: ['assigned', 'starting', 'ready'], to: 'pending', desired: 'running', generation: 'same'",
      ),
    ],
    focus: { restarts: true, everyMs: { runtimeExit: 4_000 } },
  },
  {
    name: 'retire',
    says: 'a start that was given up keeps its generation',
    off: [
      src(
        'domain/sandbox/transitions.ts',
        "retry: { from: beforeReady, to: 'pending', desired: 'running', generation: 'next'",
        "retry: { from: beforeReady, to: 'pending', desired: 'running', generation: 'same'",
      ),
    ],
    focus: { launches: { failing: 0.5 } },
  },
  {
    name: 'release.proof',
    says: 'a start that takes too long is released by time',
    off: [
      src('reconcilers/start-convergence.ts', 'import { lockLiveAssignment,', 'import { releaseAssignment, lockLiveAssignment,'),
      src('reconcilers/start-convergence.ts', '      return true', "      await releaseAssignment(tx, assignment, 'ended')\n      return true"),
    ],
    focus: { everyMs: { agentPause: 6_000, partition: 8_000 } },
  },
  {
    name: 'ended.gen',
    says: 'the end of an older generation releases a newer one',
    off: [src('services/runtime-release.ts', 'if (assignment.generation > proof.upto)', 'if (assignment.generation < 0)')],
    focus: LATE,
  },
  {
    name: 'rf.gen',
    says: 'release by fence takes whichever assignment is live',
    off: [
      src('services/runtime-release.ts', 'assignment.id !== read.assignmentId', 'assignment.id === undefined'),
      src('services/runtime-release.ts', 'assignment.epoch >= lease.epoch', 'assignment.epoch > lease.epoch'),
    ],
    focus: { hosts: 1, paceMs: 300, everyMs: { reboot: 6_000 } },
  },
  {
    name: 'rf.epoch',
    says: 'what is of the present epoch is released as fenced',
    off: [
      src('services/runtime-release.ts', 'assignment.epoch >= lease.epoch', 'assignment.epoch > lease.epoch'),
      sql('assignments/fenced', 'a.epoch < l.epoch', 'a.epoch <= l.epoch'),
    ],
  },
  {
    name: 'ready.gen',
    says: 'ready is taken for an older generation',
    off: [src('hosts/reports.ts', ' || row.generation !== report.generation) {\n    return { result:', ') {\n    return { result:')],
    focus: LATE,
  },
  {
    name: 'ready.epoch',
    says: 'ready is taken in an epoch that is over',
    off: [
      src('hosts/reports.ts', 'if (epoch !== undefined && source.epoch !== epoch)', 'if (epoch === undefined)'),
      src('hosts/reports.ts', 'if (assignment.epoch !== epoch)', 'if (epoch === undefined)'),
      src('hosts/reports.ts', "if (items.some((item) => item.type !== 'ready')) await", 'if (items.length < 0) await'),
    ],
    focus: { ...LATE, everyMs: { reboot: 6_000 } },
  },
  {
    name: 'mint.read',
    says: 'a ticket has a later term than the read that found it due',
    off: [src('hosts/order-lines.ts', 'term: row.seq, amounts', 'term: row.seq + 60, amounts')],
    focus: OLD,
  },
  {
    name: 'claim.tgt',
    says: 'a claim takes a unit that the target does not have',
    off: [sql('assignments/insert-claimed', 'AND p.target >= 1', '')],
    focus: BUSY_POOLS,
  },
  {
    name: 'claim.epoch',
    says: 'a claim takes a unit of a pool of an earlier epoch',
    off: [sql('assignments/insert-claimed', 'AND p.epoch = $4', '')],
    focus: { ...BUSY_POOLS, everyMs: { reboot: 6_000 } },
  },
  {
    name: 'claim.cordon',
    says: 'a cordoned host is placed on',
    off: [
      sql('hosts/reserve', 'AND NOT cordoned', ''),
      src('domain/placement/fleet-rooms.ts', "if (host.cordoned) return 'cordoned'", ''),
      src('domain/placement/fleet-rooms.ts', 'host.lost || host.cordoned', 'host.lost'),
    ],
    focus: { operatorEveryMs: 1_500 },
  },
  {
    name: 'drain.live',
    says: 'a drain that was called off retires',
    off: [sql('hosts/lock-drain', 'AND drain_started_at IS NOT NULL', '')],
    focus: { operatorEveryMs: 1_000 },
  },
  {
    name: 'pool.epoch',
    says: 'a pool order is of another epoch',
    off: [src('hosts/order-lines.ts', 'host: hostId, epoch, key', 'host: hostId, epoch: epoch + 1, key')],
    focus: POOLS,
  },
  {
    name: 'pool.ack',
    says: 'an older acknowledgement frees units',
    off: [sql('pools/acknowledge', 'AND version = $3', 'AND $3::bigint >= 0')],
    focus: BUSY_POOLS,
  },
  {
    name: 'pool.ticket',
    says: 'a claim does not tell what it made of the pool',
    off: [src('hosts/order-lines.ts', 'if (key === null) return null', 'if (key !== undefined) return null')],
    focus: BUSY_POOLS,
  },
  {
    name: 'ended.pool',
    says: 'a claim is released before its pool is stored',
    off: [
      src('services/runtime-release.ts', '(proof.poolVersion ?? -1) < assignment.pool_version', 'Number.POSITIVE_INFINITY < assignment.pool_version'),
      {
        file: 'host-agent/src/reconcile/sandbox-reporter.ts',
        replace: 'if (record.pool === null) this.#ended(record, null)',
        by: 'if (record.high >= 0) this.#ended(record, null)',
      },
    ],
    focus: BUSY_POOLS,
  },
  {
    name: 'register.cas',
    says: 'a host registers from any epoch',
    off: [sql('hosts/register', 'AND (epoch = $2 OR (epoch = $2 + 1 AND holder = $3))', '')],
    focus: { everyMs: { reboot: 6_000 } },
  },
  {
    name: 'renew.epoch',
    says: 'a lease is renewed for an epoch that is over',
    off: [sql('hosts/renew', 'AND epoch = $2 AND holder = $3', 'AND $2::bigint >= 0 AND $3::text IS NOT NULL')],
    focus: { everyMs: { reboot: 6_000 } },
  },
]

/** Others, of our own. */
export const CONTROL_PLANE_DEFECTS: readonly Defect[] = [
  {
    name: 'outbox.lost',
    says: 'a commit leaves no wake-ups for other replicas',
    off: [src('store/database.ts', 'const told = wakes.filter((wake) => wake.local !== true)', 'const told = wakes.filter(() => false)')],
  },
  {
    name: 'reservation.twice',
    says: 'what an assignment holds is given back twice',
    off: [sql('assignments/release', 'c.memory_mb_reserved - r.memory_mb', 'greatest(0, c.memory_mb_reserved - 2 * r.memory_mb)')],
  },
  {
    name: 'reservation.kept',
    says: 'an assignment gives its disk back to nobody',
    off: [sql('assignments/release', 'c.disk_gb_reserved - r.disk_gb', 'c.disk_gb_reserved')],
  },
  {
    name: 'quota.twice',
    says: 'quota is given back as often as it is asked',
    off: [
      src('store/quotas.ts', 'if (!(await dropQuotaMark(tx, row.id))) return', 'await dropQuotaMark(tx, row.id)'),
      src('services/runtime-release.ts', "if (left.desired !== 'running') await giveQuotaBack", 'await giveQuotaBack'),
    ],
  },
  {
    name: 'quota.free',
    says: 'a start takes no quota',
    off: [
      src(
        'store/quotas.ts',
        'if (await holdQuotaMark(tx, row.id)) await takeQuota(tx, row.tenant_id, amountsOfRow(row), true)',
        'await holdQuotaMark(tx, row.id)',
      ),
    ],
  },
  {
    name: 'audit.none',
    says: 'a delete leaves no audit row',
    off: [sql('audit-log/append', 'VALUES ($1, $2, $3, $4, $5, $6, $7)', "SELECT $1, $2, $3, $4::text, $5, $6, $7::jsonb WHERE $4::text <> 'sandbox.delete'")],
  },
  {
    name: 'audit.start',
    says: 'a start leaves no audit row',
    off: [sql('audit-log/append', 'VALUES ($1, $2, $3, $4, $5, $6, $7)', "SELECT $1, $2, $3, $4::text, $5, $6, $7::jsonb WHERE $4::text <> 'sandbox.start'")],
  },
  {
    name: 'event.none',
    says: 'a sandbox stops without an event',
    off: [
      sql(
        'sandboxes/move',
        "SELECT tenant_id, 'sandbox.' || observed, id, generation, status_reason FROM moved",
        "SELECT tenant_id, 'sandbox.' || observed, id, generation, status_reason FROM moved WHERE observed <> 'stopping'",
      ),
    ],
  },
  {
    name: 'feed.hole',
    says: 'a position of the feed is left out',
    off: [sql('events/seal', 'feeds.sealed_before + counted.nth', 'feeds.sealed_before + counted.nth * 2')],
  },
  { name: 'usage.open', says: 'a release leaves usage counting', off: [sql('assignments/release', 'AND u.closed_at IS NULL', 'AND u.closed_at IS NOT NULL')] },
  {
    name: 'operation.open',
    says: 'what became ready leaves its operation pending',
    off: [src('hosts/reports.ts', 'closeOperation(tx, row.operation_id, null),', 'undefined,')],
  },
  {
    name: 'retry.never',
    says: 'a start that is to be tried again is not',
    off: ['queue', 'lock-pending'].map((file) => sql(`sandboxes/${file}`, '(s.retry_at IS NULL OR s.retry_at <= clock_timestamp())', 's.retry_at IS NULL')),
  },
  {
    name: 'sweep.none',
    says: 'a reconciler looks only when it is woken',
    off: [src('reconcilers/reconciler.ts', 'if (!this.#stopped) this.#timer', 'if (!this.#stopped && nextInMs < periodMs) this.#timer')],
  },
  {
    name: 'pool.free',
    says: 'a pool grows without room',
    off: [src('store/pools.ts', 'if (row.added === 0) return true', 'if (row.added >= 0) return true')],
    focus: POOLS,
  },
  {
    name: 'pool.kept',
    says: 'units of an epoch that is over are given back and counted still',
    off: [sql('pools/fence', 'target = 0, held = 0', 'target = 0')],
    focus: { poolFloor: 2, everyMs: { reboot: 5_000 } },
  },
  {
    name: 'start.gen',
    says: 'a start leaves the generation alone',
    off: [
      src(
        'domain/sandbox/transitions.ts',
        "start: { from: ['stopping', 'stopped', 'failed'], to: 'pending', desired: 'running', generation: 'next'",
        "start: { from: ['stopping', 'stopped', 'failed'], to: 'pending', desired: 'running', generation: 'same'",
      ),
    ],
  },
  { name: 'end.unsent', says: 'an end is not ordered', off: [sql('hosts/due-orders', '(a.generation < s.generation OR', '(false OR')] },
  {
    name: 'fence.unreleased',
    says: 'what an earlier epoch held is never released',
    off: [sql('assignments/fenced', 'a.epoch < l.epoch', 'a.epoch < 0')],
    focus: { everyMs: { reboot: 5_000 } },
  },
]
