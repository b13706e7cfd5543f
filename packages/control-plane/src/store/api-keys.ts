/** API keys by the SHA-256 of their secret. */
import type { Role } from '@sandglass/contract'
import type { Actor } from './audit-log.ts'
import type { Queryable, Transaction } from './database.ts'
import type { PagePosition } from './sandboxes.ts'
import { statement } from './statement.ts'

export type ApiKeyRow = {
  readonly id: string
  readonly tenant_id: string
  readonly name: string
  readonly role: Role
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
  readonly last_used_at: Date | null
}

/** Who is calling. */
export type Principal = {
  readonly apiKeyId: string
  readonly tenantId: string
  readonly tenantName: string
  readonly role: Role
  readonly actor: Actor
}

const authenticate = statement<{ id: string; tenant_id: string; role: Role; actor_type: Actor['type']; tenant_name: string }>('api-keys/authenticate')
const insert = statement<ApiKeyRow>('api-keys/insert')
const find = statement<ApiKeyRow>('api-keys/find')
const list = statement<ApiKeyRow & { created_micros: number }>('api-keys/list')
const revoke = statement<{ id: string; tenant_id: string }>('api-keys/revoke')
const touch = statement('api-keys/touch')
const validAmong = statement<{ id: string }>('api-keys/valid-among')

/** @returns undefined for a key that is unknown, revoked or past its time */
export async function authenticateKey(db: Queryable, sha256: string): Promise<Principal | undefined> {
  const [row] = await db.run(authenticate, [sha256])
  if (row === undefined) return undefined
  return { apiKeyId: row.id, tenantId: row.tenant_id, tenantName: row.tenant_name, role: row.role, actor: { type: row.actor_type, id: row.id } }
}

/** @returns undefined when a key with this secret exists */
export const insertApiKey = async (
  tx: Transaction,
  key: { id: string; tenantId: string; name: string; role: Role; sha256: string; expiresInSeconds: number | null },
): Promise<ApiKeyRow | undefined> => (await tx.run(insert, [key.id, key.tenantId, key.name, key.role, key.sha256, key.expiresInSeconds]))[0]

/** @param tenantId null: of any tenant */
export const findApiKey = async (db: Queryable, id: string, tenantId: string | null): Promise<ApiKeyRow | undefined> => (await db.run(find, [id, tenantId]))[0]

/** @param tenantId null: of every tenant */
export const listApiKeys = async (
  db: Queryable,
  tenantId: string | null,
  after: PagePosition | undefined,
  limit: number,
): Promise<(ApiKeyRow & { created_micros: number })[]> => await db.run(list, [tenantId, after?.micros ?? null, after?.id ?? null, limit])

/** @param tenantId null: of any tenant */
export const revokeApiKey = async (tx: Transaction, id: string, tenantId: string | null): Promise<{ id: string; tenant_id: string } | undefined> =>
  (await tx.run(revoke, [id, tenantId]))[0]

export async function touchApiKeys(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.run(touch, [[...ids]])
}

export const validKeysAmong = async (db: Queryable, ids: readonly string[]): Promise<ReadonlySet<string>> =>
  new Set((await db.run(validAmong, [[...ids]])).map((row) => row.id))
