/**
 * Who is at the other end of a TLS connection, decided here and nowhere else, by every role alike.
 *
 * TLS itself proves that the peer holds the key of the certificate that it shows. Whether that certificate is one of ours is not left to OpenSSL's own
 * verdict: it knows no tolerance for clocks, it tells one error where there are several (an expired forgery passes for an expired certificate), and a
 * refusal shall be an answer that says why, and a row in the audit log. The PKI is one CA deep, so the check is short: signed by a CA that is trusted, not a
 * CA itself, exactly one SPIFFE id of this region and nothing else as its name, and not far from its time.
 *
 * Its time is the one place where wall clocks meet, so it is wide: a clock may be wrong by `certificateToleranceMs` either way. A certificate that is renewed
 * at half its life has then never been refused for a clock that jumped by hours, on whichever machine it did; a stolen one that nobody revokes ends a day
 * later than its text says. Whoever revokes does not wait for either where control planes look, since they ask SQL; hosts and gateways ask nobody.
 */
import type { X509Certificate } from 'node:crypto'
import { CodedError, type IdentityRole, LIMITS, parseSpiffeId, type RefusalReason, type SpiffeId } from '@sandglass/contract'
import { fingerprintOf, type Trust } from './trust.ts'

export type Peer = SpiffeId & {
  readonly keyFingerprint: string
  /** By its own text, without tolerance; Unix time in milliseconds. */
  readonly notAfterMs: number
}

/** A peer that is not let in. `claimed` is what it says it is: hostile text, cut and printable. */
export class PeerRefused extends CodedError {
  readonly reason: RefusalReason
  readonly claimed: string

  constructor(reason: RefusalReason, claimed: string) {
    super(reason === 'no_certificate' ? 'certificate_required' : 'certificate_refused', WORDS[reason])
    this.reason = reason
    this.claimed = claimed
  }
}

const WORDS: Readonly<Record<RefusalReason, string>> = {
  no_certificate: 'No certificate was shown: machines show the one that they got when they joined.',
  wrong_ca: 'The certificate was not issued by this installation.',
  expired: 'The certificate has expired: join again with a new token.',
  not_yet_valid: 'The certificate is not valid yet: compare the clocks of both machines.',
  not_an_identity: 'The certificate does not name a machine of this installation.',
  wrong_role: 'The certificate is of another role.',
  wrong_name: 'The certificate is of another machine.',
  revoked: 'The certificate was revoked: the host was removed, or has joined anew with another key.',
}

/** @throws PeerRefused */
export function checkPeer(certificate: X509Certificate | undefined, trust: Trust, wallMs: number): Peer {
  if (certificate === undefined) throw new PeerRefused('no_certificate', '')
  const claimed = claimOf(certificate)
  if (!trust.keys.some((key) => isSignedBy(certificate, key))) throw new PeerRefused('wrong_ca', claimed)
  const id = idOf(certificate)
  if (id === undefined || id.region !== trust.region || certificate.ca) throw new PeerRefused('not_an_identity', claimed)
  const notAfterMs = certificate.validToDate.getTime()
  if (wallMs > notAfterMs + LIMITS.certificateToleranceMs) throw new PeerRefused('expired', claimed)
  // Back-dated by the tolerance when it was issued.
  if (wallMs < certificate.validFromDate.getTime()) throw new PeerRefused('not_yet_valid', claimed)
  return { ...id, keyFingerprint: fingerprintOf(certificate.publicKey), notAfterMs }
}

/** @throws PeerRefused */
export function requirePeer(peer: Peer, role: IdentityRole, name?: string): void {
  if (peer.role !== role) throw new PeerRefused('wrong_role', claimText(peer))
  if (name !== undefined && peer.name !== name) throw new PeerRefused('wrong_name', claimText(peer))
}

export const claimText = ({ role, name }: SpiffeId): string => `${role}/${name}`

/** A key of another kind than the signature's is a refusal, not a failure. */
function isSignedBy(certificate: X509Certificate, key: Trust['keys'][number]): boolean {
  try {
    return certificate.verify(key)
  } catch {
    return false
  }
}

/** Node.js writes out what else there is, and quotes what could be mistaken; only a sole URI has this form. */
function idOf({ subjectAltName }: X509Certificate): SpiffeId | undefined {
  return subjectAltName?.startsWith('URI:') === true ? parseSpiffeId(subjectAltName.slice('URI:'.length)) : undefined
}

const CLAIM_CHARACTERS = 128

function claimOf(certificate: X509Certificate): string {
  const id = idOf(certificate)
  if (id !== undefined) return claimText(id)
  return (certificate.subjectAltName ?? certificate.subject).replace(/[^\x20-\x7e]/g, '?').slice(0, CLAIM_CHARACTERS)
}
