/**
 * Warm pools: runtimes that are booted before anybody asks, and what a control plane and a host say to one another about them.
 *
 * A pool is of one host and one key. The key is the digest of everything that is fixed at boot; what a sandbox gets at the claim (id, hostname,
 * environment) is not part of it. SQL counts units and never knows members: a claim moves one unit to the sandbox, and the host picks.
 */
import Type, { type Static } from 'typebox'
import { NetworkModeSchema, ResourcesSchema } from './sandbox.ts'
import { closed, oneOf } from './schema.ts'

const position = Type.Integer({ minimum: 0 })

export const POOL_KEY_PATTERN = '^[0-9a-f]{64}$'
export const PoolKeySchema = Type.String({ pattern: POOL_KEY_PATTERN, description: 'SHA-256 of the pool’s spec as text.' })

/** What is fixed when a member boots. */
export const PoolSpecSchema = closed({
  driver: oneOf(['gvisor', 'fake']),
  template: closed({ name: Type.String(), digest: Type.String() }),
  resources: ResourcesSchema,
  network: closed({ mode: NetworkModeSchema }),
  pids_max: Type.Integer({ minimum: 1 }),
})
export type PoolSpec = Static<typeof PoolSpecSchema>

/** One text for one spec, whatever the order of its fields: what the key is the digest of. */
export function poolSpecText({ driver, template, resources, network, pids_max }: PoolSpec): string {
  return JSON.stringify({
    driver,
    template: { name: template.name, digest: template.digest },
    resources: { vcpu: resources.vcpu, memory_mb: resources.memory_mb, disk_gb: resources.disk_gb },
    network: { mode: network.mode },
    pids_max,
  })
}

/** The state of a pool that a claim made; a host that has stored a newer version ignores it (pool.ver). */
export const PoolPositionSchema = closed({ key: PoolKeySchema, version: position, target: position })
export type PoolPosition = Static<typeof PoolPositionSchema>

/** Signed. Names the epoch that it was made for (pool.epoch); the host keeps at most `target` members. */
export const PoolOrderSchema = closed({
  kind: Type.Literal('pool'),
  host: Type.String(),
  epoch: position,
  key: PoolKeySchema,
  version: position,
  target: position,
})
export type PoolOrder = Static<typeof PoolOrderSchema>

/** Which way a runtime came up: `claimed` from the host's pool, or `cold`. */
export const StartPathSchema = oneOf(['claimed', 'cold'])
export type StartPath = Static<typeof StartPathSchema>
