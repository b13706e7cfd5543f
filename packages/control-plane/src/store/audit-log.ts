/** What was done by whom, written in the transaction that did it. Never holds the value of a secret. */
import type { Transaction } from './database.ts'
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
