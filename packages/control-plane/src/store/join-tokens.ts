/** Join tokens by the SHA-256 of their text. */
import type { HostLabels, JoinToken, MachineRole } from '@sandglass/contract'
import type { Queryable, Transaction } from './database.ts'
import type { PagePosition } from './sandboxes.ts'
import { statement } from './statement.ts'

export type JoinTokenRow = {
  readonly id: string
  readonly role: MachineRole
  readonly status: JoinToken['status']
  readonly labels: HostLabels
  readonly created_at: Date
  readonly expires_at: Date
  readonly used_at: Date | null
  readonly used_by: string | null
}

export type LockedToken = Pick<JoinTokenRow, 'id' | 'role' | 'labels' | 'status' | 'used_by'> & { readonly used_key: string | null; readonly is_past: boolean }

const insert = statement<JoinTokenRow>('join-tokens/insert')
const list = statement<JoinTokenRow & { created_micros: number }>('join-tokens/list')
const lock = statement<LockedToken>('join-tokens/lock')
const use = statement('join-tokens/use')
const revoke = statement<{ id: string; changed: boolean }>('join-tokens/revoke')

/** @returns undefined when a token with this text exists */
export const insertJoinToken = async (
  tx: Transaction,
  token: { id: string; sha256: string; role: MachineRole; labels: HostLabels; ttlSeconds: number },
): Promise<JoinTokenRow | undefined> => (await tx.run(insert, [token.id, token.sha256, token.role, JSON.stringify(token.labels), token.ttlSeconds]))[0]

export const listJoinTokens = async (db: Queryable, after: PagePosition | undefined, limit: number): Promise<(JoinTokenRow & { created_micros: number })[]> =>
  await db.run(list, [after?.micros ?? null, after?.id ?? null, limit])

export const lockJoinToken = async (tx: Transaction, sha256: string): Promise<LockedToken | undefined> => (await tx.run(lock, [sha256]))[0]

export async function useJoinToken(tx: Transaction, id: string, usedBy: string, keyFingerprint: string): Promise<void> {
  await tx.run(use, [id, usedBy, keyFingerprint])
}

/** @returns undefined when there is none; `changed` is false for one that could not be used any more */
export const revokeJoinToken = async (tx: Transaction, id: string): Promise<{ id: string; changed: boolean } | undefined> => (await tx.run(revoke, [id]))[0]
