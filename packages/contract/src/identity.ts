/**
 * Who a machine is: one SPIFFE id in its certificate, `spiffe://sandglass/<region>/<role>/<name>`. A host's name is its id, so a certificate opens nothing of
 * another host; the name of a control plane is its process's own.
 */
import Type, { type Static } from 'typebox'
import { closed, oneOf } from './schema.ts'

/** Roles that join. */
export const MachineRoleSchema = oneOf(['host', 'gateway'])
export type MachineRole = Static<typeof MachineRoleSchema>
export type IdentityRole = MachineRole | 'control-plane'

export const MACHINE_NAME_PATTERN = '^[a-z0-9][a-z0-9-]{0,62}$'

export type SpiffeId = { readonly region: string; readonly role: IdentityRole; readonly name: string }

const SPIFFE_ID = /^spiffe:\/\/sandglass\/([a-z0-9]{2})\/(host|gateway|control-plane)\/([a-z0-9][a-z0-9-]{0,62})$/

export const spiffeIdText = ({ region, role, name }: SpiffeId): string => `spiffe://sandglass/${region}/${role}/${name}`

/** @returns undefined for what is not exactly one of ours */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, region, role, name] = SPIFFE_ID.exec(text) ?? []
  if (region === undefined || name === undefined) return undefined
  if (role !== 'host' && role !== 'gateway' && role !== 'control-plane') return undefined
  return { region, role, name }
}

/** What is got by joining, and by `POST /internal/v1/certificates` for the certificate that is shown there. */
export const IssuedCertificateSchema = closed({
  certificate_pem: Type.String({ maxLength: 8_192 }),
  /** Of every CA that is trusted, the one that has issued this certificate among them. */
  ca_pem: Type.Array(Type.String({ maxLength: 8_192 }), { minItems: 1, maxItems: 8 }),
  /** To be counted from the answer, on the machine's own monotonic clock: no two wall clocks are compared. */
  renew_after_ms: Type.Integer({ minimum: 1 }),
})
export type IssuedCertificate = Static<typeof IssuedCertificateSchema>

/** Why a peer was refused before anything of its request was looked at. */
export const RefusalReasonSchema = oneOf(['no_certificate', 'wrong_ca', 'expired', 'not_yet_valid', 'not_an_identity', 'wrong_role', 'wrong_name', 'revoked'])
export type RefusalReason = Static<typeof RefusalReasonSchema>

/** POST /internal/v1/refusals: peers that a host or gateway refused, for the audit log. */
export const PeerRefusalsSchema = closed({
  items: Type.Array(
    closed({
      reason: RefusalReasonSchema,
      /** What the peer said it is, and where it came from; neither was believed. */
      claimed: Type.String({ maxLength: 256 }),
      address: Type.String({ maxLength: 64 }),
      count: Type.Integer({ minimum: 1 }),
    }),
    { minItems: 1, maxItems: 64 },
  ),
})
export type PeerRefusals = Static<typeof PeerRefusalsSchema>
export type PeerRefusal = PeerRefusals['items'][number]
