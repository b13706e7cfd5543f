/** What was done by whom, written in the transaction that did it. Never holds the value of a secret. */
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

export type Actor = { readonly type: 'user' | 'key' | 'host' | 'operator' | 'system'; readonly id: string }

export type AuditEntry = {
  /** Null: an act on the installation rather than on a tenant. */
  readonly tenantId: string | null
  readonly actor: Actor
  readonly action: string
  readonly subject: string
  readonly requestId?: string
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>
}

const append = statement('audit-log/append')
const lateReports = statement('audit-log/late-reports')

export async function audit(tx: Transaction, entry: AuditEntry): Promise<void> {
  await tx.run(append, [
    entry.tenantId,
    entry.actor.type,
    entry.actor.id,
    entry.action,
    entry.subject,
    entry.requestId ?? null,
    JSON.stringify(entry.detail ?? {}),
  ])
}

export type LateReport = { readonly type: string; readonly sandboxId: string; readonly generation: number }

/** Reports of a host that came too late; one that is noted already is not noted again. */
export async function auditLateReports(
  db: Queryable,
  source: { readonly hostId: string; readonly epoch: number },
  code: 'stale_generation' | 'stale_epoch',
  reports: readonly LateReport[],
): Promise<void> {
  const columns = [reports.map((late) => late.sandboxId), reports.map((late) => late.type), reports.map((late) => late.generation)]
  await db.run(lateReports, [source.hostId, ...columns, source.epoch, code])
}
