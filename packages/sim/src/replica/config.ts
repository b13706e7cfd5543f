/** The configuration of the simulated control planes: real periods, with fewer looks in between. */
import { createHash, createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { type Config, DEFAULT_RATES, DEFAULT_TIMING } from '@sandglass/control-plane/config'
import { MEMORY_MB } from '../client/workload.ts'
import { TEMPLATE } from '../host/machine.ts'

export const KEYS = { owner: `sgk_${'o'.repeat(43)}`, operator: `sgk_${'p'.repeat(43)}` }

export const SWEEP_MS = 4_000

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const ticketKey = createPrivateKey(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))

export function replicaConfig({ poolFloor }: { readonly poolFloor: number }): Config {
  const resources = { vcpu: 0.5, memory_mb: MEMORY_MB, disk_gb: 1 }
  return {
    host: '127.0.0.1',
    port: 0,
    internalHost: '127.0.0.1',
    internalPort: 0,
    internalUrl: undefined,
    authorityKey: ticketKey,
    databaseUrl: 'postgresql://simulated',
    ticketKey,
    bootstrapKeys: [
      { name: 'owner', role: 'owner', sha256: sha256(KEYS.owner) },
      { name: 'operator', role: 'operator', sha256: sha256(KEYS.operator) },
    ],
    bootstrapJoinTokens: [],
    gatewayUrls: ['http://gateway.simulated'],
    templatesDir: undefined,
    region: 'l1',
    cpuOvercommit: 4,
    logLevel: 'warn',
    allowedOrigins: new Set(),
    openapiFile: join(import.meta.dirname, '../../../../openapi/openapi.json'),
    pools: { enabled: poolFloor > 0, floors: [{ driver: 'fake', template: TEMPLATE.name, resources, count: poolFloor }], ceiling: 2, memoryShare: 0.5 },
    placement: { hostLossHeadroom: false },
    timing: { ...DEFAULT_TIMING, sweepMs: SWEEP_MS, startTimeoutMs: 12_000 },
    rates: DEFAULT_RATES,
  }
}
