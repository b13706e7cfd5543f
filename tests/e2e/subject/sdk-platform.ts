/** The platform of the cases, on the SDK. */
import { type CreateSandboxOptions, Sandbox, type Sandglass } from '@sandglass/sdk'
import type { CreateOptions, Platform, Seen } from './platform.ts'
import { sdkSandbox } from './sdk-sandbox.ts'

const seen = ({ resource }: Sandbox): Seen => ({
  id: resource.id,
  name: resource.name,
  status: resource.status,
  generation: resource.generation,
  expiresAtMs: Date.parse(resource.expires_at),
})

function optionsOf({ vcpu, memoryMb, wait: _, ...options }: CreateOptions): CreateSandboxOptions {
  return { ...options, ...(vcpu === undefined && memoryMb === undefined ? {} : { resources: { vcpu, memoryMb } }) }
}

/** @param apiKey the client's key, for what the SDK has no call for */
export function sdkPlatform(client: Sandglass, apiKey: string): Platform {
  return {
    async create(options) {
      if (options.wait === false) return seen((await Sandbox.create({ ...optionsOf(options), client, wait: false })).sandbox)
      return seen(await Sandbox.create({ ...optionsOf(options), client }))
    },
    get: async (idOrName) => seen(await Sandbox.get(idOrName, { client })),
    async list() {
      const all: Seen[] = []
      for await (const sandbox of Sandbox.list({ client })) all.push(seen(sandbox))
      return all
    },
    async remove(id) {
      await (await Sandbox.get(id, { client })).delete()
    },
    extend: async (id, ttlSeconds) => seen(await (await Sandbox.get(id, { client })).extend(ttlSeconds)),
    async reserved() {
      const total = { vcpu: 0, memory_mb: 0, disk_gb: 0 }
      for await (const { reserved } of client.hosts.list()) {
        total.vcpu += reserved.vcpu
        total.memory_mb += reserved.memory_mb
        total.disk_gb += reserved.disk_gb
      }
      return total
    },
    enter: async (id) => sdkSandbox(await Sandbox.get(id, { client }), apiKey),
  }
}

/** What a client with a shorter life in mind does. */
export async function getAgain(client: Sandglass, name: string, ttlSeconds: number): Promise<Seen> {
  return seen(await Sandbox.getOrCreate({ client, name, ttlSeconds }))
}
