/** Tenants. */
import type { Queryable, Transaction } from './database.ts'
import { insertDefaultQuota } from './quotas.ts'
import { statement } from './statement.ts'

export type TenantRow = { readonly id: string; readonly name: string }

const insert = statement('tenants/insert')
const find = statement<TenantRow>('tenants/find')

export const findTenant = async (db: Queryable, name: string): Promise<TenantRow | undefined> => (await db.run(find, [name]))[0]

/** Makes it with the usual quota when it does not exist. */
export async function ensureTenant(tx: Transaction, name: string, newId: () => string): Promise<TenantRow | undefined> {
  await tx.run(insert, [newId(), name])
  const tenant = await findTenant(tx, name)
  if (tenant !== undefined) await insertDefaultQuota(tx, tenant.id)
  return tenant
}
