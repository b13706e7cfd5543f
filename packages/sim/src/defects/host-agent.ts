/** Deliberate defects of the host agent: its guards, each switched off, by their names in the ownership protocol, and others of our own. */
import type { Replacement } from '../loading/hooks.ts'
import { BUSY_POOLS, OLD } from './focuses.ts'
import type { Defect } from './search.ts'

const src = (file: string, replace: string, by: string): Replacement => ({ file: `host-agent/src/${file}`, replace, by })
const POOLS = { poolFloor: 2 } as const

export const HOST_AGENT_GUARDS: readonly Defect[] = [
  {
    name: 'end.kill',
    says: 'an end is reported before the runtime is gone',
    off: [src('reconcile/sandbox-end.ts', 'held.reporter.withdrawReady()\n', 'held.reporter.withdrawReady()\n    held.reporter.ended(recordGone(record))\n')],
  },
  {
    name: 'end.durable',
    says: 'an end is reported before its mark is on disk',
    off: [
      src('reconcile/sandbox-end.ts', 'await held.write(decision.record)', 'held.assume(decision.record)'),
      src('reconcile/sandbox-end.ts', 'await held.write(gone)', 'held.assume(gone)'),
    ],
    focus: { ...OLD, everyMs: { ...OLD.everyMs, agentCrash: 3_000 } },
  },
  {
    name: 'end.gen',
    says: 'an old end order ends a newer generation',
    off: [
      src('domain/decide-end.ts', 'order.upto < record.high', 'order.upto < 0'),
      src('reconcile/sandbox-start.ts', 'upto >= this.#launch.generation', 'upto >= 0'),
    ],
    focus: OLD,
  },
  {
    name: 'ticket.new',
    says: 'a ticket starts its generation again',
    off: [src('domain/decide-ticket.ts', 'if (ticket.generation === high) return', "if (ticket.generation === high && record?.phase !== 'gone') return")],
    focus: OLD,
  },
  {
    name: 'ticket.old',
    says: 'an old ticket is taken up',
    off: [src('domain/decide-ticket.ts', 'if (ticket.generation < high)', 'if (ticket.generation < -1)')],
    focus: OLD,
  },
  {
    name: 'ticket.epoch',
    says: 'a ticket of another epoch is taken up',
    off: [src('domain/decide-ticket.ts', 'if (ticket.epoch !== host.epoch)', 'if (ticket.epoch < 0)')],
    focus: { ...OLD, everyMs: { ...OLD.everyMs, reboot: 8_000 } },
  },
  {
    name: 'ticket.term',
    says: 'a ticket never expires',
    off: [src('domain/decide-ticket.ts', 'if (host.lastSeq > ticket.term + LIMITS.ticketTerms)', 'if (host.lastSeq < 0)')],
    focus: OLD,
  },
  {
    name: 'tomb.term',
    says: 'a mark is forgotten as soon as its end is answered',
    off: [src('domain/tombstone.ts', 'lastSeq > record.term + LIMITS.ticketTerms', 'lastSeq >= 0')],
    focus: OLD,
  },
  {
    name: 'recover.launch',
    says: 'a launch in flight is left to come up by itself',
    off: [src('domain/plan-recovery.ts', 'else actions.push({ kind', "else if (record.phase !== 'launching') actions.push({ kind")],
    focus: { everyMs: { agentCrash: 3_000 } },
  },
  {
    name: 'register.empty',
    says: 'a host registers anew while something runs',
    off: [src('control/host-link.ts', 'if (lease.mustAskAnew) await this.#world.endEverything()', '')],
  },
  {
    name: 'pool.ver',
    says: 'an older pool order is obeyed',
    off: [src('domain/stored-pool.ts', 'if (position.version > stored.version)', 'if (position.version !== stored.version)')],
    focus: BUSY_POOLS,
  },
  {
    name: 'pool.epoch.host',
    says: 'a pool order of another epoch is obeyed',
    off: [src('pools/pool-positions.ts', 'if (epoch !== this.#epoch) return false', 'if (epoch < 0) return false')],
    focus: { ...BUSY_POOLS, everyMs: { reboot: 6_000, oldOrder: 1_000 } },
  },
  {
    name: 'pool.ackn',
    says: 'a pool is acknowledged with more members than its target',
    off: [src('pools/pool.ts', 'return this.size <= this.#target', 'return this.size >= 0')],
    focus: BUSY_POOLS,
  },
  {
    name: 'pool.reset',
    says: 'a new epoch keeps the pools of the one before',
    off: [
      src(
        'pools/pool-positions.ts',
        'this.#pools.clear()\n    this.#durable.clear()\n    this.#epoch = epoch\n    await this.#records.forgetAll()',
        'this.#epoch = epoch',
      ),
      src('pools/pools.ts', 'this.#pools.clear()\n', ''),
    ],
    focus: { ...BUSY_POOLS, everyMs: { partition: 10_000 } },
  },
  {
    name: 'cold.fit',
    says: 'a claim starts cold while members are ending',
    off: [
      src('domain/plan-pool.ts', "view.ending <= view.target ? { kind: 'cold' } : { kind: 'wait' }", "view.ending >= 0 ? { kind: 'cold' } : { kind: 'wait' }"),
    ],
    focus: BUSY_POOLS,
  },
  {
    name: 'member.record',
    says: 'a member learns whose it is before a record names it',
    off: [
      src(
        'reconcile/sandbox-start.ts',
        'await this.#held.write(record)\n',
        'this.#held.assume(record)\n      void this.#held.write(record).catch(() => undefined)\n',
      ),
    ],
    focus: BUSY_POOLS,
  },
]

/** Others, of our own. */
export const HOST_AGENT_DEFECTS: readonly Defect[] = [
  {
    name: 'tomb.none',
    says: 'an end of what never was here leaves no mark',
    off: [
      src(
        'reconcile/sandbox-end.ts',
        'await held.write(decision.record)',
        'if (held.record === undefined) return held.reporter.ended(decision.record)\n    await held.write(decision.record)',
      ),
    ],
  },
  {
    name: 'adopt.dead',
    says: 'a dead runtime is adopted',
    off: [src('domain/plan-recovery.ts', 'if (mayRun(record) && alive.has(name))', 'if (mayRun(record))')],
  },
  {
    name: 'boot.resumed',
    says: 'a rebooted machine goes on with its epoch',
    off: [src('domain/host-record.ts', 'record.epoch > 0 && record.boot_id === bootId && record.floor', 'record.epoch > 0 && record.floor')],
  },
  {
    name: 'stray.left',
    says: 'what no record names is left running',
    off: [
      src(
        'domain/plan-recovery.ts',
        'if (parsed !== undefined && !owned.has(text)) actions.push',
        "if (parsed !== undefined && !owned.has(text) && parsed.kind === 'sandbox') actions.push",
      ),
    ],
    focus: { ...BUSY_POOLS, everyMs: { agentCrash: 3_000 } },
  },
  {
    name: 'pool.early',
    says: 'a pool is acknowledged before it is on disk',
    off: [src('pools/pools.ts', 'if (asked) await positions.flush(key)', ''), src('pools/pools.ts', '!positions.isDurable(key) || ', '')],
    focus: { ...BUSY_POOLS, everyMs: { agentCrash: 3_000 } },
  },
  {
    name: 'exit.unseen',
    says: 'a runtime that ended by itself is not noticed',
    off: [
      src(
        'reconcile/sandbox-end.ts',
        "if (record?.phase !== 'running' || record.runtime === null) return",
        "if (record?.phase !== 'ending' || record.runtime === null) return",
      ),
    ],
  },
  {
    name: 'start.unrecorded',
    says: 'a start is not on disk before its runtime is made',
    off: [
      src(
        'reconcile/sandbox-start.ts',
        'await this.#held.write(record)\n',
        'if (member === undefined) this.#held.assume(record)\n      else await this.#held.write(record)\n',
      ),
    ],
  },
  {
    name: 'member.twice',
    says: 'a member that was picked stays in its pool',
    off: [src('pools/pool.ts', 'taken: once(() => this.#members.delete(member.name))', 'taken: once(() => member.putBack())')],
    focus: POOLS,
  },
]
