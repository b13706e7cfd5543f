/**
 * Ends what has outlived its deadline, or what nobody has used for its idle timeout: deletes it, or stops it where it asked for that. Both deadlines are asked
 * again under the row's lock, because an extension or a use may have come first.
 *
 * That a sandbox is used is heard from gateways (internal/access.ts). While they could not tell, because this process or the database was away, nobody is
 * idle: the looks in a row have to reach back for a lease before that counts, since by then whoever still uses a sandbox has been asked about.
 */
import type { Context } from '../context.ts'
import { deleteLocked } from '../services/delete-sandbox.ts'
import { stopLocked } from '../services/run-sandbox.ts'
import type { Database, Transaction } from '../store/database.ts'
import { expiredSandboxes, idleSandboxes, isSandboxExpired, isSandboxIdle, lockSandboxOfTenant, nextExpiryInMs, type SandboxRow } from '../store/sandboxes.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 100

type Own = Pick<Context, 'world' | 'config'> & { readonly db: Database }
type End = 'ttl_expired' | 'idle'

const STOPPED = {
  ttl_expired: 'ttl_expired: its time to live is over; what was written in it is gone',
  idle: 'idle_timeout: nobody has used it for its idle timeout; what was written in it is gone',
} as const

export class Timeouts {
  readonly #context: Own
  /** Since when every look has been answered, and when the last one was. */
  #lookedSinceMs: number | undefined
  #lookedAtMs = 0

  constructor(context: Own) {
    this.#context = context
  }

  async reconcile(): Promise<Outcome> {
    const { db } = this.#context
    const idleCounts = this.#idleCounts()
    try {
      let ended = await this.#endAll(await expiredSandboxes(db, BATCH), 'ttl_expired')
      if (idleCounts) ended += await this.#endAll(await idleSandboxes(db, BATCH), 'idle')
      return { actions: ended, nextInMs: await nextExpiryInMs(db, idleCounts) }
    } catch (error) {
      this.#lookedSinceMs = undefined
      throw error
    }
  }

  /** Looks have come one after another for a lease, none later than half of one after the one before. */
  #idleCounts(): boolean {
    const { world, config } = this.#context
    const nowMs = world.monotonicMs()
    const { leaseMs } = config.timing
    if (this.#lookedSinceMs === undefined || nowMs - this.#lookedAtMs > leaseMs / 2) this.#lookedSinceMs = nowMs
    this.#lookedAtMs = nowMs
    return nowMs - this.#lookedSinceMs >= leaseMs
  }

  async #endAll(due: readonly { id: string; tenant_id: string }[], end: End): Promise<number> {
    const { db } = this.#context
    let ended = 0
    for (const { id, tenant_id } of due) if (await db.transaction((tx) => this.#endOne(tx, tenant_id, id, end))) ended += 1
    return ended
  }

  async #endOne(tx: Transaction, tenantId: string, id: string, end: End): Promise<boolean> {
    const row = await lockSandboxOfTenant(tx, tenantId, id)
    if (row === undefined || row.desired === 'deleted' || !(await isDue(tx, row, end))) return false
    const actor = { type: 'system', id: end === 'idle' ? 'idle' : 'ttl' } as const
    if (row.desired === 'running' && row.on_timeout === 'stop') return await stopLocked(tx, this.#context, row, { actor, statusReason: STOPPED[end] })
    await deleteLocked(tx, this.#context, row, { actor, reason: end })
    return true
  }
}

const isDue = (tx: Transaction, row: SandboxRow, end: End): Promise<boolean> => (end === 'idle' ? isSandboxIdle(tx, row.id) : isSandboxExpired(tx, row.id))
