/** First start: the tenant `default`, the keys and the join tokens of the bootstrap files. On later starts only what is new in those is added. */
import { LIMITS, newApiKeyId, newJoinTokenId, newTenantId } from '@sandglass/contract'
import type { Config } from '../config.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import { insertApiKey } from '../store/api-keys.ts'
import { audit } from '../store/audit-log.ts'
import type { Database } from '../store/database.ts'
import { insertJoinToken } from '../store/join-tokens.ts'
import { ensureTenant } from '../store/tenants.ts'
import type { World } from '../world.ts'

export const DEFAULT_TENANT = 'default'

export async function bootstrap(db: Database, config: Pick<Config, 'bootstrapKeys' | 'bootstrapJoinTokens'>, world: Pick<World, 'random'>): Promise<void> {
  await db.transaction(async (tx) => {
    const tenant = await ensureTenant(tx, DEFAULT_TENANT, () => newTenantId(world.random))
    if (tenant === undefined) throw new InvariantBroken('the default tenant was not made')
    for (const key of config.bootstrapKeys) {
      const made = await insertApiKey(tx, { ...key, id: newApiKeyId(world.random), tenantId: tenant.id, expiresInSeconds: null })
      if (made === undefined) continue
      await audit(tx, {
        tenantId: tenant.id,
        actor: { type: 'system', id: 'bootstrap' },
        action: 'api_key.create',
        subject: made.id,
        detail: { role: key.role },
      })
    }
    for (const { role, sha256 } of config.bootstrapJoinTokens) {
      const made = await insertJoinToken(tx, { id: newJoinTokenId(world.random), sha256, role, labels: {}, ttlSeconds: LIMITS.joinTokenSecondsDefault })
      if (made === undefined) continue
      await audit(tx, { tenantId: null, actor: { type: 'system', id: 'bootstrap' }, action: 'join_token.create', subject: made.id, detail: { role } })
    }
  })
}
