/** API keys: `sgk_` and 43 base64url characters (256 bits). Only their SHA-256 is stored. */
import Type, { type Static } from 'typebox'
import { PATTERNS } from './forms.ts'
import { RoleSchema } from './role.ts'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable } from './schema.ts'

export const API_KEY_PATTERN = /^sgk_[A-Za-z0-9_-]{43}$/

export const ApiKeySchema = closed(
  {
    id: Type.String(),
    name: Type.String(),
    role: RoleSchema,
    tenant_id: Type.String(),
    created_at: TimeSchema,
    expires_at: nullable(TimeSchema),
    revoked_at: nullable(TimeSchema),
    last_used_at: nullable(TimeSchema),
  },
  { $id: 'ApiKey' },
)
export type ApiKey = Static<typeof ApiKeySchema>

export const CreateApiKeySchema = closed(
  {
    name: Type.String({ minLength: 1, maxLength: 63, pattern: PATTERNS.apiKeyName }),
    role: Type.Optional(RoleSchema),
    expires_in_seconds: Type.Optional(Type.Integer({ minimum: 60, maximum: 10 * 365 * 24 * 3600 })),
    tenant: Type.Optional(
      Type.String({
        pattern: '^[a-z][a-z0-9-]{0,62}$',
        description: 'Operators only: the tenant by name, made when it does not exist. Default: the tenant of the calling key.',
      }),
    ),
  },
  { $id: 'CreateApiKey' },
)
export type CreateApiKey = Static<typeof CreateApiKeySchema>

export const CreatedApiKeySchema = closed(
  { ...ApiKeySchema.properties, key: Type.String({ description: 'The secret. Shown once.' }) },
  { $id: 'CreatedApiKey' },
)
export type CreatedApiKey = Static<typeof CreatedApiKeySchema>
