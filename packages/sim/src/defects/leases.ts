/** Deliberate defects of leases and fencing: the guards of both sides, and of the warden between them. */
import type { Focus } from '../faults/mix.ts'
import type { Replacement } from '../loading/hooks.ts'
import type { Defect } from './search.ts'

const control = (file: string, replace: string, by: string): Replacement => ({ file: `control-plane/src/${file}`, replace, by })
const agent = (file: string, replace: string, by: string): Replacement => ({ file: `host-agent/src/${file}`, replace, by })
/** What is not written in TypeScript is simulated, and so is its defect. */
const world = (file: string, replace: string, by: string): Replacement => ({ file: `sim/src/${file}`, replace, by })

const LONG = { durationMs: 120_000, paceMs: 6_000, shortLives: false, hosts: 2, replicas: 2 } as const
/** Nothing but what is looked for keeps a lease from being renewed, or an observer from looking. */
const CALM = { reboot: 0, agentCrash: 0, fullDisk: 0, runtimeExit: 0, replicaCrash: 0, replicaPause: 0, databaseOutage: 0 } as const
const ALIVE = { points: { replicaDies: 0 } } as const
/** Hosts are cut off for so long that they are fenced. */
const CUT = { ...LONG, ...ALIVE, everyMs: { ...CALM, partition: 20_000, agentPause: 0 }, lastsMs: { partition: [[45_000, 70_000]] } } as const satisfies Focus
/** Agents stand still for so long that their hosts are fenced. */
const PAUSED = {
  ...LONG,
  ...ALIVE,
  everyMs: { ...CALM, agentPause: 20_000, partition: 0 },
  lastsMs: { agentPause: [[45_000, 60_000]] },
} as const satisfies Focus
/** A renewal is answered behind a pause, and no other one behind it. */
const ANSWERED_LATE: Focus = {
  ...LONG,
  hosts: 1,
  everyMs: { ...CALM, agentPause: 12_000, partition: 20_000 },
  lastsMs: { agentPause: [[15_000, 35_000]], partition: [[45_000, 70_000]] },
  network: { lost: 0, answerLost: 0, slow: 0.7, slowMs: 4_000 },
}
/** A launch takes so long, and is looked after by nobody, that its host is fenced before it is over. */
const SLOW_LAUNCHES: Focus = {
  ...PAUSED,
  paceMs: 300,
  poolFloor: 0,
  everyMs: { ...PAUSED.everyMs, agentPause: 10_000, slowDisk: 4_000 },
}

export const LEASE_GUARDS: readonly Defect[] = [
  {
    name: 'fence.cas',
    says: 'a host is fenced that has renewed since it was seen',
    off: [control('store/sql/hosts/fence.sql', 'AND epoch = $2 AND seq = $3', 'AND $2::bigint >= 0 AND $3::bigint >= 0')],
    focus: { ...CUT, lastsMs: { partition: [[38_000, 46_000]] }, points: { replicaStalls: 0.8, replicaDies: 0 } },
  },
  {
    name: 'fence.grace',
    says: 'an observer waits for the grace, not for the lease',
    off: [control('reconcilers/host-lease-sweeper.ts', 'waitMs: leaseMs + fenceGraceMs', 'waitMs: Math.min(leaseMs, fenceGraceMs)')],
    focus: CUT,
  },
  {
    name: 'fence.clock',
    says: 'an observer counts on a wall clock',
    off: [
      control(
        'reconcilers/host-lease-sweeper.ts',
        'const answeredAtMs = world.monotonicMs()',
        "const answeredAtMs = Reflect.apply(Reflect.get(world, 'wallMs'), world, [])",
      ),
      control('domain/host/fencing.ts', 'answeredAtMs - memory.lookedAtMs <= bounds.gapMs', 'answeredAtMs - memory.lookedAtMs <= Number.POSITIVE_INFINITY'),
    ],
    focus: { ...LONG, everyMs: { wallStep: 8_000 } },
  },
  {
    name: 'fence.holder',
    says: 'an observer counts from when it began to look, whatever it saw since',
    off: [
      control(
        'domain/host/fencing.ts',
        'if (known?.epoch !== lease.epoch || known.seq !== lease.seq) return',
        'if (known?.epoch === lease.epoch && known.seq !== lease.seq) return { ...known, seq: lease.seq }\n  if (known?.epoch !== lease.epoch) return',
      ),
    ],
    focus: CUT,
  },
  {
    name: 'renew.sent',
    says: 'a deadline counts from the answer of the renewal',
    off: ['await lease.heard(', 'await pools.enter('].map((next) =>
      agent('control/host-link.ts', `await warden.renewed(sent)\n        ${next}`, `await warden.renewed(await warden.moment())\n        ${next}`),
    ),
    focus: ANSWERED_LATE,
  },
  {
    name: 'register.floor',
    says: 'a host resumes an epoch that it had given up',
    off: [
      agent('domain/host-record.ts', 'if (answer.epoch < record.floor || answer.epoch < record.epoch) return undefined', ''),
      agent('domain/host-record.ts', 'floor: Math.max(record.floor, record.epoch + 1) }', 'floor: record.floor }'),
    ],
  },
  {
    name: 'told.epoch',
    says: 'a host does not learn that it was fenced',
    off: [
      agent(
        'domain/host-record.ts',
        'return told !== undefined && told > Math.max(record.epoch, record.floor - 1) ? { ...record, floor: told + 1 } : record',
        'return told === -1 ? { ...record, floor: 0 } : record',
      ),
    ],
    focus: CUT,
  },
  {
    name: 'warden.apart',
    says: 'the deadline is enforced by the agent itself',
    off: [world('host/machine.ts', 'freeze: () => this.#setFrozen(true)', 'freeze: () => void (this.agent?.paused === false && this.#setFrozen(true))')],
    focus: PAUSED,
  },
  {
    name: 'warden.none',
    says: 'nothing freezes at the deadline',
    off: [world('host/machine.ts', 'freeze: () => this.#setFrozen(true)', 'freeze: () => undefined')],
    focus: CUT,
  },
  {
    name: 'launch.gate',
    says: 'something is launched behind the deadline',
    off: [
      world('host/machine.ts', "if (!this.warden.isOpen) throw new Error('the gate of the warden is closed')", ''),
      world('host/machine.ts', 'runtime.frozen = this.warden.frozen', 'runtime.frozen = false'),
      world('host/driver.ts', "gate.through(['launch'])", ''),
    ],
    focus: SLOW_LAUNCHES,
  },
  {
    name: 'restart.deadline',
    says: 'a restart of the agent extends the deadline',
    off: [
      world(
        'edges/warden-process.ts',
        'this.#renewalMs = renewalMs',
        'this.#renewalMs = renewalMs\n    this.#machine.warden.renewed(this.#machine.warden.nowMs, renewalMs)',
      ),
    ],
    focus: { ...CUT, everyMs: { ...CUT.everyMs, agentCrash: 10_000 } },
  },
  {
    name: 'usage.fence',
    says: 'usage is counted behind a fence',
    off: [control('services/fence-host.ts', 'await closeUsageOfEpochs(tx, seen.hostId)', 'void closeUsageOfEpochs')],
    focus: CUT,
  },
  {
    name: 'audit.fence',
    says: 'a fence leaves no audit row',
    off: [
      control(
        'store/sql/audit-log/append.sql',
        'VALUES ($1, $2, $3, $4, $5, $6, $7)',
        "SELECT $1, $2, $3, $4::text, $5, $6, $7::jsonb WHERE $4::text <> 'host.fence'",
      ),
    ],
    focus: CUT,
  },
]
