import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitUntil } from '../src/bounded-wait.ts'
import { closeCodeView, openCodeView } from '../src/code-view.ts'
import { privilegedCommand, requireReach } from '../src/privileges.ts'
import { identityOf } from '../src/process-identity.ts'
import { ensureUser, findUser, SYSTEM_USERS } from '../src/system-user.ts'

const user = SYSTEM_USERS.api
const { uid } = await ensureUser(user)

test('a system user is made once, without a login', async () => {
  assert.deepEqual(await ensureUser(user), findUser(user))
  assert.match(readFileSync('/etc/passwd', 'utf8'), /^sandglass-api:x:\d+:\d+:[^:]*:\/nonexistent:\/usr\/sbin\/nologin$/m)
})

test('a role runs as its user, without capabilities and without a way to new ones', () => {
  const as = privilegedCommand(['cat', '/proc/self/status'], { user, deathSignal: 'KILL' })
  const status = spawnSync(as.command, as.args, { encoding: 'utf8' }).stdout
  assert.match(status, new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'))
  assert.match(status, /^Groups:\t *$/m)
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(status, new RegExp(`^${set}:\\t0{16}$`, 'm'))
  assert.match(status, /^NoNewPrivs:\t1$/m)
})

test('a role dies with the process that started it', async () => {
  const as = privilegedCommand(['sleep', '300'], { user, deathSignal: 'KILL' })
  const script = `const child = require('node:child_process').spawn(process.argv[1], JSON.parse(process.argv[2]), { stdio: 'ignore' }); console.log(child.pid); setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['-e', script, as.command, JSON.stringify(as.args)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line]: unknown[] = await once(parent.stdout, 'data')
  const pid = Number(String(line))
  const became = () => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep')
  assert.ok(await waitUntil(became, { timeoutMs: 10_000, everyMs: 10 }))
  parent.kill('SIGKILL')
  assert.ok(await waitUntil(() => identityOf(pid) === undefined, { timeoutMs: 10_000, everyMs: 10 }))
})

test('code where the role’s user cannot go is seen through a mount that goes when it is closed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-view-'))
  const place = join(folder, 'view of it')
  try {
    chmodSync(folder, 0o711)
    const code = join(folder, 'private', 'code')
    mkdirSync(code, { recursive: true })
    chmodSync(join(folder, 'private'), 0o700)
    writeFileSync(join(code, 'package.json'), '{"name":"seen"}')
    assert.throws(() => requireReach(user, code), /The system user sandglass-api cannot enter/)
    for (let again = 0; again < 2; again += 1) assert.deepEqual(openCodeView(user, code, '/bin/true', place), { root: place, node: '/bin/true' })
    const as = privilegedCommand(['cat', join(place, 'package.json')], { user, deathSignal: 'KILL' })
    assert.equal(spawnSync(as.command, as.args, { encoding: 'utf8' }).stdout, '{"name":"seen"}')
    closeCodeView(place)
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(folder))
    assert.equal(existsSync(place), false)
    closeCodeView(place)
  } finally {
    closeCodeView(place)
    rmSync(folder, { recursive: true, force: true })
  }
})

test('code that everybody may read is used where it is', () => {
  const view = openCodeView(user, join(import.meta.dirname, '../../..'), '/bin/true', '/nonexistent/view')
  assert.equal(view.root, join(import.meta.dirname, '../../..'))
})
