/**
 * Certificates of machines: the first one for a join token, the next ones for the present one. Both are transactions that lock what says whether they may:
 * the token, then the identity. guard: join.once, join.key, renew.identity
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { CodedError, ID_PATTERNS, type IssuedCertificate, type JoinRequest, joinProofText, LIMITS, sha256Hex } from '@sandglass/contract'
import { fingerprintOf, type Peer, PeerRefused } from '@sandglass/identity'
import { lifetimeFrom } from '@sandglass/identity/authority'
import type { Context } from '../context.ts'
import { wakeIdentity } from '../events/wake-bus.ts'
import { type Actor, audit } from '../store/audit-log.ts'
import { type IdentityRow, lockIdentity, type MachineName, renewIdentity, writeIdentity } from '../store/identities.ts'
import { type LockedToken, lockJoinToken, useJoinToken } from '../store/join-tokens.ts'

const HOST_ID = new RegExp(ID_PATTERNS.host)
const RENEW_AFTER = 0.5

/** @throws CodedError `join_token_unknown`, `join_token_expired`, `join_token_used`, `identity_taken`, `certificate_refused` for a key that was revoked */
export async function joinMachine(context: Context, request: JoinRequest, address: string): Promise<IssuedCertificate> {
  const publicKey = provedKey(request)
  const keyFingerprint = fingerprintOf(publicKey)
  const { name } = request
  // Anybody may ask to join: what waits here is not what renews leases.
  return await context.db.for('requests').transaction(async (tx) => {
    const token = await lockJoinToken(tx, sha256Hex(request.token))
    if (token === undefined) throw new CodedError('join_token_unknown')
    const { role } = token
    const isRepeat = token.used_by === name && token.used_key === keyFingerprint && !token.is_past
    if (!isRepeat) requireOpen(token)
    if (role === 'host' && !HOST_ID.test(name)) throw new CodedError('invalid_request', 'The name of a host is its id.')
    requireFree({ role, name }, await lockIdentity(tx, { role, name }), keyFingerprint)
    const { issued, serial, expiresAt } = issue(context, { role, name }, publicKey)
    if (!(await writeIdentity(tx, { role, name, keyFingerprint, labels: token.labels, serial, expiresAt }))) throw new CodedError('identity_taken')
    await useJoinToken(tx, token.id, name, keyFingerprint)
    await audit(tx, {
      tenantId: null,
      actor: actorOf({ role, name }),
      action: 'machine.join',
      subject: name,
      detail: { role, token: token.id, serial, address, key: keyFingerprint },
    })
    tx.wake(wakeIdentity({ role, name }))
    return issued
  })
}

/** @throws PeerRefused when the identity was revoked, or is another key's by now */
export async function renewCertificate(context: Context, peer: Peer & MachineName, publicKey: KeyObject): Promise<IssuedCertificate> {
  const { role, name, keyFingerprint } = peer
  return await context.db.for('hosts').transaction(async (tx) => {
    const { issued, serial, expiresAt } = issue(context, peer, publicKey)
    if (!(await renewIdentity(tx, { role, name, keyFingerprint, serial, expiresAt }))) throw new PeerRefused('revoked', `${role}/${name}`)
    await audit(tx, { tenantId: null, actor: actorOf(peer), action: 'certificate.renew', subject: name, detail: { role, serial } })
    return issued
  })
}

export const actorOf = ({ role, name }: MachineName): Actor => (role === 'host' ? { type: 'host', id: name } : { type: 'system', id: `${role}/${name}` })

function provedKey({ proof, ...asked }: JoinRequest): KeyObject {
  try {
    const key = createPublicKey(asked.public_key_pem)
    if (key.asymmetricKeyType === 'ed25519' && verify(null, Buffer.from(joinProofText(asked)), key, Buffer.from(proof, 'base64url'))) return key
  } catch {
    // Not a key.
  }
  throw new CodedError('invalid_request', '/proof is not a signature by the Ed25519 key of /public_key_pem.', {
    errors: [{ path: '/proof', message: 'is not a signature by that key' }],
  })
}

function requireOpen({ status }: LockedToken): void {
  if (status === 'used') throw new CodedError('join_token_used')
  if (status !== 'open') throw new CodedError('join_token_expired')
}

/**
 * What a host holds hangs on its id, so that no token takes a living one over: only the key that it has, or its removal, lets another one in. A gateway holds
 * nothing, and a new one of its name takes its place.
 */
function requireFree({ role, name }: MachineName, known: IdentityRow | undefined, keyFingerprint: string): void {
  if (known === undefined) return
  const isSame = known.key_fingerprint === keyFingerprint
  if (known.is_revoked && isSame) throw new CodedError('certificate_refused', `${role} ${name} was removed: it joins with a new key.`)
  if (role === 'host' && !known.is_revoked && !isSame) throw new CodedError('identity_taken')
}

function issue({ authority, config, world }: Context, { role, name }: MachineName, publicKey: KeyObject) {
  const { pem, serial, notAfter } = authority.issue({ region: config.region, role, name, publicKey }, lifetimeFrom(world.wallMs()))
  const issued: IssuedCertificate = {
    certificate_pem: pem,
    ca_pem: [authority.certificatePem],
    renew_after_ms: LIMITS.certificateLifeMs * RENEW_AFTER,
  }
  return { issued, serial, expiresAt: notAfter }
}
