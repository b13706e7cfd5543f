/**
 * Join tokens: one lets one machine in, once. `sgj_`, 256 random bits, and behind a dot the fingerprint of the control plane's CA, both in base64url: who
 * holds the token knows whom to trust at the first contact. Only its SHA-256 is stored.
 */
import Type, { type Static } from 'typebox'
import { HostLabelsSchema } from './host.ts'
import { MACHINE_NAME_PATTERN, MachineRoleSchema } from './identity.ts'
import { LIMITS } from './limits.ts'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const JOIN_TOKEN_PATTERN = /^sgj_[A-Za-z0-9_-]{43}\.([A-Za-z0-9_-]{43})$/

export const JoinTokenSchema = closed(
  {
    id: Type.String(),
    role: MachineRoleSchema,
    status: oneOf(['open', 'used', 'expired', 'revoked']),
    labels: HostLabelsSchema,
    created_at: TimeSchema,
    expires_at: TimeSchema,
    used_at: nullable(TimeSchema),
    used_by: nullable(Type.String({ description: 'The id of the host, or the name of the gateway, that joined with it.' })),
  },
  { $id: 'JoinToken' },
)
export type JoinToken = Static<typeof JoinTokenSchema>

export const CreateJoinTokenSchema = closed(
  {
    role: Type.Optional(MachineRoleSchema),
    ttl_seconds: Type.Optional(
      Type.Integer({ minimum: LIMITS.joinTokenSecondsMin, maximum: LIMITS.joinTokenSecondsMax, default: LIMITS.joinTokenSecondsDefault }),
    ),
    labels: Type.Optional(HostLabelsSchema),
  },
  { $id: 'CreateJoinToken' },
)
export type CreateJoinToken = Static<typeof CreateJoinTokenSchema>

export const CreatedJoinTokenSchema = closed(
  {
    ...JoinTokenSchema.properties,
    token: Type.String({ description: 'The secret. Shown once.' }),
    join_url: Type.String({ description: 'Where machines join: the control plane’s listener for them.' }),
  },
  { $id: 'CreatedJoinToken' },
)
export type CreatedJoinToken = Static<typeof CreatedJoinTokenSchema>

/** POST /internal/v1/join; the one internal request that needs no certificate. */
export const JoinRequestSchema = closed({
  token: Type.String({ pattern: JOIN_TOKEN_PATTERN.source }),
  name: Type.String({ pattern: MACHINE_NAME_PATTERN, description: 'The id that the host has made for itself, or the name of the gateway.' }),
  public_key_pem: Type.String({ maxLength: 1_024 }),
  /** Signature of `joinProofText` by that key, base64url: who asks holds it. */
  proof: Type.String({ maxLength: 512 }),
})
export type JoinRequest = Static<typeof JoinRequestSchema>

export const joinProofText = ({ token, name, public_key_pem }: Omit<JoinRequest, 'proof'>): string => `sandglass join\n${token}\n${name}\n${public_key_pem}`
