/** First start: the tenant `default` and the keys of the bootstrap file. On later starts only what is new in that file is added. */
import { newApiKeyId, newTenantId } from '@sandglass/contract'
import type { Config } from '../config.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import { insertApiKey } from '../store/api-keys.ts'
import { audit } from '../store/audit-log.ts'
import type { Database } from '../store/database.ts'
import { ensureTenant } from '../store/tenants.ts'
import type { World } from '../world.ts'

export const DEFAULT_TENANT = 'default'

export async function bootstrap(db: Database, config: Pick<Config, 'bootstrapKeys'>, world: Pick<World, 'random'>): Promise<void> {
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
  })
}
