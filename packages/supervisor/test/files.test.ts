import assert from 'node:assert/strict'
import { createHash, createPrivateKey } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { installationOf, paths, urlOf } from '../src/installation.ts'
import { LogFile } from '../src/log-file.ts'
import { readLogs } from '../src/log-reader.ts'
import { ROLES, roleEnvironment } from '../src/role-environment.ts'
import { writeSecrets } from '../src/secrets.ts'
import { resolveSettings, writeSettings } from '../src/settings.ts'

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'sandglass-files-'));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

const at = (home: string) =>
  installationOf({
    home,
    cache: '/var/cache/sandglass',
    code: '/code',
    host: '127.0.0.1',
    internalHost: '127.0.0.1',
    ports: { api: 7070, gateway: 7071, hostHealth: 0, internal: 7073 },
  })
const owner = (uid: number) => ({ uid, gid: uid })
const owners = { root: owner(0), api: owner(60_001), gateway: owner(60_002) }

test('each secret is readable by its one owner, and made once', () => {
  using folder = new Folder()
  writeSecrets(at(folder.path), owners)
  const expected: Record<string, number> = {
    'secrets/ticket.key': 60_001,
    'secrets/ca.key': 60_001,
    'secrets/host.join': 0,
    'secrets/gateway.join': 60_002,
    'secrets/join-tokens.json': 60_001,
    'secrets/bootstrap-keys.json': 60_001,
    'admin.key': 0,
    'tenant.key': 0,
    'profile.json': 0,
  }
  for (const [file, uid] of Object.entries(expected)) {
    const stat = statSync(join(folder.path, file))
    assert.equal(stat.mode & 0o777, 0o600, file)
    assert.equal(stat.uid, uid, file)
  }
  const before = readFileSync(paths.adminKey(folder.path), 'utf8')
  assert.match(before, /^sgk_[A-Za-z0-9_-]{43}$/)
  assert.equal(createPrivateKey(readFileSync(paths.secret(folder.path, 'ticket.key'))).asymmetricKeyType, 'ed25519')
  writeSecrets(at(folder.path), owners)
  assert.equal(readFileSync(paths.adminKey(folder.path), 'utf8'), before)
})

test('what follows from a secret is right again after a crash between the two', () => {
  using folder = new Folder()
  writeSecrets(at(folder.path), owners)
  writeFileSync(paths.secret(folder.path, 'join-tokens.json'), 'half')
  rmSync(paths.profile(folder.path))
  writeSecrets(at(folder.path), owners)
  const tokens = (['host', 'gateway'] as const).map((role) => {
    const token = readFileSync(paths.secret(folder.path, `${role}.join`), 'utf8')
    return { role, sha256: createHash('sha256').update(token).digest('hex') }
  })
  assert.deepEqual(JSON.parse(readFileSync(paths.secret(folder.path, 'join-tokens.json'), 'utf8')), tokens)
  assert.ok(existsSync(paths.profile(folder.path)))
})

test('no role gets a secret in its environment, nor anything that is not named', () => {
  using folder = new Folder()
  const installation = at(folder.path)
  writeSecrets(installation, owners)
  const outer = { AWS_SECRET_ACCESS_KEY: 'x', SANDGLASS_REGION: 'e1', LD_PRELOAD: '/evil.so' }
  const secrets = ['ticket.key', 'ca.key', 'host.join', 'gateway.join', 'bootstrap-keys.json'].map((name) =>
    readFileSync(paths.secret(folder.path, name), 'utf8'),
  )
  for (const role of ROLES) {
    const environment = roleEnvironment(role, installation, outer)
    for (const secret of secrets) assert.ok(!Object.values(environment).includes(secret))
    assert.equal(environment['LD_PRELOAD'], undefined)
    assert.equal(environment['AWS_SECRET_ACCESS_KEY'], undefined)
    assert.equal(environment['SANDGLASS_HOME'], folder.path)
  }
  assert.equal(roleEnvironment('control-plane', installation, outer)['SANDGLASS_REGION'], 'e1')
  assert.equal(roleEnvironment('gateway', installation, outer)['SANDGLASS_REGION'], undefined)
})

test('a host never counts on a longer lease than its control plane gives', () => {
  using folder = new Folder()
  const renewalOf = (outer: NodeJS.ProcessEnv) => roleEnvironment('host-agent', at(folder.path), outer)['SANDGLASS_LEASE_RENEWAL_MS']
  assert.equal(renewalOf({}), undefined)
  assert.equal(renewalOf({ SANDGLASS_LEASE_MS: '6000' }), '5000')
  assert.equal(renewalOf({ SANDGLASS_LEASE_MS: '6000', SANDGLASS_LEASE_RENEWAL_MS: '9000' }), '5000')
  assert.equal(renewalOf({ SANDGLASS_LEASE_MS: '6000', SANDGLASS_LEASE_RENEWAL_MS: '2000' }), '2000')
})

test('flags win over the environment, that over the last start, that over the defaults', () => {
  using folder = new Folder()
  const ports = (environment: NodeJS.ProcessEnv, wishes = {}) => resolveSettings(folder.path, environment, wishes).ports
  assert.deepEqual(ports({}), { api: 7070, gateway: 7071, hostHealth: 0, internal: 0 })
  const last = { api: 8000, gateway: 8001, hostHealth: 8002, internal: 8003 }
  writeSettings(folder.path, { host: '127.0.0.1', internalHost: '10.0.0.1', ports: last })
  assert.deepEqual(ports({}), last)
  assert.equal(resolveSettings(folder.path, {}, {}).internalHost, '10.0.0.1')
  assert.deepEqual(ports({ SANDGLASS_API_PORT: '9000' }), { ...last, api: 9000 })
  assert.deepEqual(ports({ SANDGLASS_API_PORT: '9000' }, { apiPort: 9_500 }), { ...last, api: 9_500 })
  assert.deepEqual(ports({ SANDGLASS_HOST_HEALTH_PORT: '0', SANDGLASS_INTERNAL_PORT: '0' }), { ...last, hostHealth: 0, internal: 0 })
  assert.throws(() => ports({ SANDGLASS_INTERNAL_PORT: '8001' }), /hosts and gateways cannot share port 8001/)
  assert.throws(() => ports({ SANDGLASS_HOST_HEALTH_PORT: '8001' }), /host agent cannot share port 8001/)
  assert.throws(() => resolveSettings(folder.path, { SANDGLASS_API_PORT: 'http' }, {}), /SANDGLASS_API_PORT must be a port/)
  assert.throws(() => resolveSettings(folder.path, {}, { apiPort: 8001 }), /cannot share port 8001/)
})

test('a home whose sockets would be too long is refused by name', () => {
  assert.throws(() => at(`/${'x'.repeat(100)}`), /SANDGLASS_HOME has 101 bytes; sockets below it allow 80/)
})

test('an address that means every address is reached through loopback', () => {
  assert.equal(urlOf('0.0.0.0', 7070), 'http://127.0.0.1:7070')
  assert.equal(urlOf('::1', 7070), 'http://[::1]:7070')
  assert.equal(urlOf('10.0.0.5', 7070), 'http://10.0.0.5:7070')
})

test('a log is moved aside at its size, and only so many are kept', () => {
  using folder = new Folder()
  const path = join(folder.path, 'api.log')
  const log = new LogFile(path, { bytes: 100, kept: 2 })
  for (let index = 0; index < 50; index += 1) log.write(`line ${String(index).padStart(4, '0')}\n`)
  log.close()
  for (const name of ['api.log', 'api.log.1', 'api.log.2']) assert.ok(statSync(join(folder.path, name)).size <= 100, name)
  assert.equal(existsSync(join(folder.path, 'api.log.3')), false)
  assert.match(readFileSync(path, 'utf8'), /line 0049\n$/)
})

test('logs are read from their last lines and followed across rotation', async () => {
  using folder = new Folder()
  const home = folder.path
  const { mkdirSync } = await import('node:fs')
  mkdirSync(paths.logs(home))
  const log = new LogFile(paths.log(home, 'api'), { bytes: 60, kept: 1 })
  for (const line of ['one', 'two', 'three']) log.write(`${line}\n`)
  const stop = new AbortController()
  const seen: string[] = []
  for await (const { line } of readLogs({ home, roles: ['api'], lines: 2, follow: true, signal: stop.signal })) {
    seen.push(line)
    if (line === 'three') log.write(`${'x'.repeat(50)}\nlast\n`)
    if (line === 'last') stop.abort()
  }
  log.close()
  assert.deepEqual(seen, ['two', 'three', 'x'.repeat(50), 'last'])
})
