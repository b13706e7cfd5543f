/** Deletes what has outlived its deadline. The deadline is asked again under the row's lock, because an extension may have come first. */
import type { Context } from '../context.ts'
import { deleteLocked } from '../services/delete-sandbox.ts'
import type { Database } from '../store/database.ts'
import { expiredSandboxes, isSandboxExpired, lockSandboxOfTenant, nextExpiryInMs } from '../store/sandboxes.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 100

export async function reconcileTtl(context: Pick<Context, 'world'> & { readonly db: Database }): Promise<Outcome> {
  const expired = await expiredSandboxes(context.db, BATCH)
  let deleted = 0
  for (const { id, tenant_id } of expired) {
    const done = await context.db.transaction(async (tx) => {
      const row = await lockSandboxOfTenant(tx, tenant_id, id)
      if (row === undefined || row.desired === 'deleted' || !(await isSandboxExpired(tx, id))) return false
      await deleteLocked(tx, context, row, { actor: { type: 'system', id: 'ttl' }, reason: 'ttl_expired' })
      return true
    })
    if (done) deleted += 1
  }
  return { actions: deleted, nextInMs: await nextExpiryInMs(context.db) }
}
