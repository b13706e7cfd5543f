/** Identities of machines: which key is good for each, and which were revoked. */
import type { HostLabels, MachineRole } from '@sandglass/contract'
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

export type IdentityRow = { readonly key_fingerprint: string | null; readonly is_revoked: boolean }
export type MachineName = { readonly role: MachineRole; readonly name: string }

const lock = statement<IdentityRow>('identities/lock')
const read = statement<IdentityRow>('identities/read')
const share = statement<IdentityRow>('identities/share')
const joined = statement<{ written: true }>('identities/join')
const renew = statement<{ renewed: true }>('identities/renew')
const revoke = statement('identities/revoke')
const takeLabels = statement<{ labels: HostLabels }>('identities/take-labels')

export const lockIdentity = async (tx: Transaction, { role, name }: MachineName): Promise<IdentityRow | undefined> => (await tx.run(lock, [role, name]))[0]

export const readIdentity = async (db: Queryable, { role, name }: MachineName): Promise<IdentityRow | undefined> => (await db.run(read, [role, name]))[0]

/** @returns false when another key joined as it, or it was revoked; else it stays so until the transaction ends */
export async function holdsIdentity(tx: Transaction, { role, name, keyFingerprint }: MachineName & { readonly keyFingerprint: string }): Promise<boolean> {
  const [row] = await tx.run(share, [role, name])
  return row === undefined || (!row.is_revoked && row.key_fingerprint === keyFingerprint)
}

type Certified = MachineName & { readonly keyFingerprint: string; readonly serial: string; readonly expiresAt: Date }

/** @returns false when another key has joined as this host meanwhile */
export async function writeIdentity(tx: Transaction, identity: Certified & { readonly labels: HostLabels }): Promise<boolean> {
  const { role, name, keyFingerprint, labels, serial, expiresAt } = identity
  return (await tx.run(joined, [role, name, keyFingerprint, JSON.stringify(labels), serial, expiresAt])).length === 1
}

/** @returns false when another key joined as it, or it was revoked */
export const renewIdentity = async (tx: Transaction, { role, name, keyFingerprint, serial, expiresAt }: Certified): Promise<boolean> =>
  (await tx.run(renew, [role, name, keyFingerprint, serial, expiresAt])).length === 1

export async function revokeIdentity(tx: Transaction, { role, name }: MachineName): Promise<void> {
  await tx.run(revoke, [role, name])
}

export const takeTokenLabels = async (tx: Transaction, hostId: string): Promise<HostLabels | undefined> => (await tx.run(takeLabels, [hostId]))[0]?.labels
