import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { wireHost } from '../../sdk/test/wire-host.ts'
import { ARTEFACT_CHECKS } from '../src/doctor/artefact-checks.ts'
import { INSTALLATION_CHECKS } from '../src/doctor/installation-checks.ts'
import { type FileFacts, type Machine, thisMachine } from '../src/doctor/machine.ts'
import { MACHINE_CHECKS } from '../src/doctor/machine-checks.ts'

const program: FileFacts = { mode: 0o755, size: 3_000_000, isFile: true, executable: true }
const secret: FileFacts = { mode: 0o600, size: 48, isFile: true, executable: false }
const manifest = {
  name: 'base',
  digest: `sha256:${'a'.repeat(64)}`,
  file: 'base-aaaaaaaaaaaa.erofs',
  size_bytes: 7,
  packages: [],
  created_at: '2026-01-01T00:00:00Z',
}
const profile = { url: 'http://127.0.0.1:7070', api_key: `sgk_${'a'.repeat(43)}` }
const host = wireHost({ reserved: { vcpu: 0, memory_mb: 0, disk_gb: 0 }, sandboxes: 0, renewed_at: null })

type Sickness = {
  files?: Record<string, FileFacts | undefined>
  texts?: Record<string, string | undefined>
  answers?: Record<string, { status: number; body: string } | undefined>
  change?: Partial<Machine>
}

/** A healthy machine with a running installation, and what the test breaks. */
function machine({ files = {}, texts = {}, answers = {}, change = {} }: Sickness = {}): Machine {
  const allFiles: Record<string, FileFacts | undefined> = {
    '/dev/loop-control': secret,
    '/proc/self/ns/net': secret,
    '/c/bin/runsc': program,
    '/c/guest-agent/sandglass-guest': program,
    '/c/warden/sandglass-warden': program,
    '/c/templates/base-aaaaaaaaaaaa.erofs': { ...secret, size: 7 },
    '/h/admin.key': secret,
    '/h/tenant.key': secret,
    '/h/profile.json': secret,
    ...files,
  }
  const allTexts: Record<string, string | undefined> = {
    '/proc/filesystems': 'nodev\tproc\n\terofs\n',
    '/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
    '/c/templates/base.json': JSON.stringify(manifest),
    '/h/profile.json': JSON.stringify(profile),
    ...texts,
  }
  const allAnswers: Record<string, { status: number; body: string } | undefined> = {
    'http://127.0.0.1:7070/healthz': { status: 200, body: '' },
    'http://127.0.0.1:7071/healthz': { status: 200, body: '' },
    'http://127.0.0.1:7072/healthz': { status: 200, body: '' },
    'http://127.0.0.1:7070/readyz': { status: 200, body: '' },
    'http://127.0.0.1:7071/readyz': { status: 200, body: '' },
    'http://127.0.0.1:7070/v1/templates': { status: 200, body: '' },
    'http://127.0.0.1:7070/v1/hosts': { status: 200, body: JSON.stringify({ items: [host], next_cursor: null }) },
    ...answers,
  }
  return {
    uid: 0,
    kernel: '6.1.0-18-amd64',
    cpus: 2,
    memoryBytes: 8 * 1024 ** 3,
    home: '/h',
    cache: '/c',
    apiPort: 7070,
    gatewayPort: 7071,
    hostHealthPort: 7072,
    read: async (path) => allTexts[path],
    file: async (path) => allFiles[path],
    program: async (name) => `/usr/sbin/${name}`,
    run: async () => ({ code: 0, output: 'runsc version 20260905' }),
    freeBytes: async () => 50 * 1024 ** 3,
    listens: async () => true,
    get: async (url) => allAnswers[url],
    ...change,
  }
}

async function statuses(sick: Machine): Promise<Record<string, string>> {
  const checks = [...MACHINE_CHECKS, ...ARTEFACT_CHECKS, ...INSTALLATION_CHECKS]
  return Object.fromEntries(await Promise.all(checks.map(async (check) => [check.name, (await check.run(sick)).status])))
}

test('a healthy machine is all ok', async () => {
  assert.deepEqual(new Set(Object.values(await statuses(machine()))), new Set(['ok']))
})

test('a health port that no one has chosen is no port to look at', async () => {
  const sick = machine({ change: { hostHealthPort: 0, listens: async () => assert.fail('nothing to connect to') } })
  const check = INSTALLATION_CHECKS.find(({ name }) => name === 'host health port') ?? assert.fail()
  assert.deepEqual(await check.run(sick), { status: 'ok', saw: 'a free one at each start; SANDGLASS_HOST_HEALTH_PORT gives one that stays' })
})

test('the ports are those of the environment, else of the last start, else the defaults', () => {
  const home = mkdtempSync(join(tmpdir(), 'sandglass-doctor-'))
  const portsOf = (environment: Record<string, string>) => {
    const { apiPort, gatewayPort, hostHealthPort } = thisMachine({ SANDGLASS_HOME: home, ...environment })
    return [apiPort, gatewayPort, hostHealthPort]
  }
  try {
    assert.deepEqual(portsOf({}), [7070, 7071, 0])
    writeFileSync(join(home, 'settings.json'), '{"host":"127.0.0.1","api_port":8080,"gateway_port":8081,"host_health_port":8082}')
    assert.deepEqual(portsOf({}), [8080, 8081, 8082])
    assert.deepEqual(portsOf({ SANDGLASS_API_PORT: '9090', SANDGLASS_HOST_HEALTH_PORT: '9092' }), [9090, 8081, 9092])
    assert.throws(() => portsOf({ SANDGLASS_HOST_HEALTH_PORT: 'x' }), /SANDGLASS_HOST_HEALTH_PORT must be a port/)
  } finally {
    rmSync(home, { recursive: true })
  }
})

const none: Partial<Machine> = { program: async () => undefined, run: async () => undefined }
const SICK: Record<string, [check: string, status: 'warn' | 'fail', sickness: Sickness]> = {
  'not root': ['user', 'warn', { change: { uid: 1000 } }],
  'an old kernel': ['kernel', 'fail', { change: { kernel: '4.19.0' } }],
  'little memory': ['size', 'warn', { change: { memoryBytes: 1024 ** 3 } }],
  'no erofs': ['erofs', 'fail', { texts: { '/proc/filesystems': 'ext4\n' }, change: none }],
  'no loop devices': ['loop devices', 'fail', { files: { '/dev/loop-control': undefined } }],
  'no ip': ['network namespaces', 'fail', { change: none }],
  'a cgroup controller is missing': ['cgroups', 'fail', { texts: { '/sys/fs/cgroup/cgroup.controllers': 'cpu memory\n' } }],
  'no cgroups at all': ['cgroups', 'fail', { texts: { '/sys/fs/cgroup/cgroup.controllers': undefined } }],
  'a disk that is nearly full': ['disk of home', 'warn', { change: { freeBytes: async () => 2 * 1024 ** 3 } }],
  'a disk that is full': ['disk of cache', 'fail', { change: { freeBytes: async () => 1_000 } }],
  'no runsc': ['runsc', 'fail', { files: { '/c/bin/runsc': undefined } }],
  'a runsc that does not run': ['runsc', 'fail', { change: { run: async () => ({ code: 1, output: 'no' }) } }],
  'no warden': ['warden', 'fail', { files: { '/c/warden/sandglass-warden': undefined } }],
  'no guest agent': ['guest agent', 'fail', { files: { '/c/guest-agent/sandglass-guest': undefined } }],
  'no template': ['template base', 'fail', { texts: { '/c/templates/base.json': undefined } }],
  'a template cut short': ['template base', 'fail', { files: { '/c/templates/base-aaaaaaaaaaaa.erofs': secret } }],
  'a manifest that is none': ['template base', 'fail', { texts: { '/c/templates/base.json': '{' } }],
  'a key that others can read': ['key files', 'fail', { files: { '/h/admin.key': { ...secret, mode: 0o644 } } }],
  'a port that another program has': ['api port', 'fail', { answers: { 'http://127.0.0.1:7070/healthz': { status: 404, body: '' } } }],
  'a health port that another program has': ['host health port', 'fail', { answers: { 'http://127.0.0.1:7072/healthz': { status: 404, body: '' } } }],
  'an API that is not running': ['API', 'warn', { answers: { 'http://127.0.0.1:7070/readyz': undefined } }],
  'an API that is not ready': ['API', 'fail', { answers: { 'http://127.0.0.1:7070/readyz': { status: 503, body: '' } } }],
  'a key that is refused': ['API', 'fail', { answers: { 'http://127.0.0.1:7070/v1/templates': { status: 401, body: '' } } }],
  'a gateway that is not ready': ['gateway', 'fail', { answers: { 'http://127.0.0.1:7071/readyz': { status: 503, body: '' } } }],
  'no installation': ['hosts', 'warn', { texts: { '/h/profile.json': undefined } }],
  'no host': ['hosts', 'fail', { answers: { 'http://127.0.0.1:7070/v1/hosts': { status: 200, body: '{"items":[],"next_cursor":null}' } } }],
  'a host without proof': [
    'hosts',
    'fail',
    { answers: { 'http://127.0.0.1:7070/v1/hosts': { status: 200, body: JSON.stringify({ items: [{ ...host, drivers: [] }], next_cursor: null }) } } },
  ],
}

for (const [what, [check, status, sickness]] of Object.entries(SICK)) {
  test(`${what}: ${check} is ${status}, and says what to type`, async () => {
    const sick = machine(sickness)
    const found = [...MACHINE_CHECKS, ...ARTEFACT_CHECKS, ...INSTALLATION_CHECKS].find(({ name }) => name === check)
    const finding = await (found ?? assert.fail(`there is no check ${check}`)).run(sick)
    assert.equal(finding.status, status)
    assert.ok((finding.means ?? '') !== '' && (finding.fix ?? '') !== '')
  })
}
