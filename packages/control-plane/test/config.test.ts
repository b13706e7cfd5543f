/** Configuration that is missing or wrong is named, and its secrets are not. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { configFrom } from '../src/config.ts'
import { CRASH_POINTS, crashAt } from '../src/faults/crash-point.ts'

const folder = mkdtempSync(join(tmpdir(), 'sandglass-config-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const good = {
  SANDGLASS_DATABASE_URL: 'postgresql:///x',
  SANDGLASS_GATEWAY_URL: 'http://127.0.0.1:7071',
  SANDGLASS_TICKET_KEY_FILE: file('key.pem', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  SANDGLASS_CA_KEY_FILE: file('ca.pem', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
}

test('defaults are those that are documented', () => {
  const config = configFrom(good)
  const { host, port, region, cpuOvercommit } = config
  assert.deepEqual({ host, port, region, cpuOvercommit }, { host: '127.0.0.1', port: 7070, region: 'l1', cpuOvercommit: 4 })
  const { enabled, floors } = config.pools
  assert.deepEqual([enabled, floors.map((floor) => [floor.driver, floor.template, floor.count])], [true, [['gvisor', 'base', 2]]])
})

test('gateways are one or several', () => {
  assert.deepEqual(configFrom({ ...good, SANDGLASS_GATEWAY_URL: 'http://g1:1,http://g2:2/' }).gatewayUrls, ['http://g1:1', 'http://g2:2'])
})

test('a lease that is shortened for tests keeps its proportions, and none is prolonged', () => {
  const { leaseMs, renewPeriodMs, fenceGraceMs } = configFrom({ ...good, SANDGLASS_LEASE_MS: '6000' }).timing
  assert.deepEqual({ leaseMs, renewPeriodMs, fenceGraceMs }, { leaseMs: 6_000, renewPeriodMs: 1_000, fenceGraceMs: 2_000 })
  assert.throws(() => configFrom({ ...good, SANDGLASS_LEASE_MS: '60000' }), /SANDGLASS_LEASE_MS must be a number/)
})

test('floors of pools are read one by one', () => {
  const floors = (text: string) => configFrom({ ...good, SANDGLASS_POOL_FLOOR: '3', SANDGLASS_POOL_FLOOR_SPECS: text }).pools.floors
  assert.deepEqual(
    floors('base,0.1,128,1,100; other,1,512,2,4,fake;').map((floor) => [floor.driver, floor.template, floor.resources.memory_mb, floor.count]),
    [
      ['gvisor', 'base', 512, 3],
      ['gvisor', 'base', 128, 100],
      ['fake', 'other', 512, 4],
    ],
  )
  assert.equal(configFrom({ ...good, SANDGLASS_POOL_FLOOR: '0' }).pools.enabled, false)
})

const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

const wrong: [name: string, change: Record<string, string | undefined>, says: RegExp][] = [
  ['no database', { SANDGLASS_DATABASE_URL: undefined }, /SANDGLASS_DATABASE_URL is not set/],
  ['a gateway that is no URL', { SANDGLASS_GATEWAY_URL: 'http://g1,g2' }, /SANDGLASS_GATEWAY_URL must be an http or https URL, or several/],
  ['a port that is none', { SANDGLASS_API_PORT: '70000' }, /SANDGLASS_API_PORT must be a number/],
  ['a file that is not there', { SANDGLASS_CA_KEY_FILE: join(folder, 'none') }, /SANDGLASS_CA_KEY_FILE: .* cannot be read/],
  ['a CA key of another kind', { SANDGLASS_CA_KEY_FILE: file('ec', ecKey) }, /SANDGLASS_CA_KEY_FILE does not hold an Ed25519 key/],
  ['join tokens that are none', { SANDGLASS_JOIN_TOKENS_FILE: file('tokens', '[{"token": "secret-token"}]') }, /SANDGLASS_JOIN_TOKENS_FILE/],
  ['machines without TLS', { SANDGLASS_INTERNAL_URL: 'http://10.0.0.1:7073' }, /SANDGLASS_INTERNAL_URL must be an https/],
  ['a key that is none', { SANDGLASS_TICKET_KEY_FILE: file('nokey', 'secret-key') }, /SANDGLASS_TICKET_KEY_FILE does not hold a private key/],
  ['bootstrap keys that are none', { SANDGLASS_BOOTSTRAP_KEYS_FILE: file('keys', '[{"key": "secret-key"}]') }, /SANDGLASS_BOOTSTRAP_KEYS_FILE/],
  ['a switch that is neither on nor off', { SANDGLASS_PLACEMENT_HEADROOM: 'yes' }, /SANDGLASS_PLACEMENT_HEADROOM must be 0 or 1/],
  ['a floor without a count', { SANDGLASS_POOL_FLOOR_SPECS: 'base,0.1,128,1' }, /SANDGLASS_POOL_FLOOR_SPECS: base,0\.1,128,1 is not/],
  ['a floor that no sandbox can have', { SANDGLASS_POOL_FLOOR_SPECS: 'base,0.1,1,1,5' }, /within the limits of a sandbox/],
  ['more members than a pool may have', { SANDGLASS_POOL_FLOOR_SPECS: 'base,0.1,128,1,257' }, /within the limits/],
  ['a long region', { SANDGLASS_REGION: 'eu-west' }, /SANDGLASS_REGION/],
  ['the region of canaries, which run without a lease', { SANDGLASS_REGION: '00' }, /SANDGLASS_REGION must be .* not 00/],
]
for (const [name, change, says] of wrong) {
  test(`${name}`, () => {
    assert.throws(
      () => configFrom({ ...good, ...change }),
      (error: unknown) => error instanceof RangeError && says.test(error.message) && !error.message.includes('secret'),
    )
  })
}

test('a crash point that does not exist is refused with the list of those that do', () => {
  assert.throws(() => crashAt('create.commited'), /create\.committed/)
  assert.throws(() => crashAt('create.open:0'), /at least 1/)
  assert.equal(new Set(CRASH_POINTS).size, CRASH_POINTS.length)
})
