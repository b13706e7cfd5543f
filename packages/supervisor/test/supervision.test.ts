import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { waitUntil } from '../src/bounded-wait.ts'
import { paths } from '../src/installation.ts'
import { readPidFile, writePidFile } from '../src/pid-file.ts'
import { identityOf, isAlive } from '../src/process-identity.ts'
import { ScriptedHome } from './scripted-role.ts'

const SERVE = 'touch "$READY"; exec sleep 300'
const soon = (holds: () => boolean) => waitUntil(holds, { timeoutMs: 60_000, everyMs: 5 })

test('a group starts only when the one before is ready, and groups stop in the opposite order', async () => {
  await using place = new ScriptedHome()
  const first = place.role(
    'first',
    'trap "echo first >>$HERE/order; exit 0" TERM; echo begun-first >>$HERE/order; touch "$READY"; while :; do sleep 0.05; done',
  )
  const second = place.role(
    'second',
    'trap "echo second >>$HERE/order; exit 0" TERM; echo begun-second >>$HERE/order; touch "$READY"; while :; do sleep 0.05; done',
  )
  const supervision = place.supervise([[first], [second]])
  await supervision.start()
  assert.deepEqual(
    supervision.reports.map((report) => report.state),
    ['ready', 'ready'],
  )
  assert.deepEqual(
    supervision.reports.map((report) => report.url),
    ['http://first', 'http://second'],
  )
  await supervision.stop()
  assert.equal(place.read('order'), 'begun-first\nbegun-second\nsecond\nfirst\n')
  assert.deepEqual(
    supervision.reports.map((report) => report.state),
    ['stopped', 'stopped'],
  )
  assert.deepEqual(
    supervision.reports.map((report) => report.url),
    [undefined, undefined],
  )
})

test('a role that is killed is started again, with another pid in its file', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([[place.role('api', SERVE)]])
  await supervision.start()
  const before = readPidFile(place.home, 'api')
  assert.ok(before)
  process.kill(before.pid, 'SIGKILL')
  assert.ok(await soon(() => supervision.reports[0]?.state === 'ready' && supervision.reports[0].restarts === 1))
  const after = readPidFile(place.home, 'api')
  assert.notEqual(after?.pid, before.pid)
  assert.equal(supervision.reports[0]?.lastExit, 'ended by SIGKILL')
})

test('the pause between restarts grows and is bounded', async () => {
  await using place = new ScriptedHome()
  const script = '[ -e "$HERE/serve" ] || exit 4; touch "$READY"; exec sleep 300'
  const supervision = place.supervise([[place.role('api', script)]], { startCrashes: 1_000 })
  const started = supervision.start()
  assert.ok(await soon(() => (supervision.reports[0]?.restarts ?? 0) >= 6))
  const restarts = supervision.reports[0]?.restarts ?? 0
  // Six pauses from 10 ms on take 10+20+40+80+80+80 ms; without a bound they would take 630.
  assert.ok(restarts < 60, `${restarts} restarts at once`)
  spawn('touch', [place.file('serve')])
  await started
  assert.equal(supervision.reports[0]?.state, 'ready')
})

test('a role that never gets ready fails the start with its name, its end and its last words', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([[place.role('api', 'echo "cannot open the database" >&2; exit 7')]])
  await assert.rejects(supervision.start(), (error: Error) => {
    assert.match(error.message, /The role api ended 3 times \(exit code 7\)\. It said last: "cannot open the database"\. Type: sandglass logs api/)
    return true
  })
})

test('what comes before a role runs is no time that it ran well, and is over when the role is told to stop', async () => {
  await using place = new ScriptedHome()
  const role = place.role('api', 'exit 7')
  const slow = { ...role, launch: (signal: AbortSignal) => delay(40, undefined, { signal }).then(() => role.launch(signal)) }
  await assert.rejects(place.supervise([[slow]], { stableMs: 30 }).start(), /The role api ended 3 times \(exit code 7\)/)
  await using other = new ScriptedHome()
  let isOver = false
  const launch = async (signal: AbortSignal) => {
    await once(signal, 'abort')
    isOver = true
    return await role.launch(signal)
  }
  const supervision = other.supervise([[{ ...role, launch }]])
  const started = assert.rejects(supervision.start(), /was told to stop/)
  await supervision.stop()
  await started
  assert.equal(isOver, true)
})

test('a role that runs without getting ready fails the start in time, and is stopped', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([[place.role('api', 'exec sleep 300')]], { startMs: 200 })
  await assert.rejects(supervision.start(), /The role api was not ready within 0.2 s/)
  const role = readPidFile(place.home, 'api')
  assert.ok(role)
  await supervision.stop()
  assert.equal(isAlive(role), false)
})

test('a role that ignores its signal is killed when its patience is over', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([[place.role('deaf', 'trap "" TERM; touch "$READY"; while :; do sleep 0.05; done')]], { stopMs: 150 })
  await supervision.start()
  const role = readPidFile(place.home, 'deaf')
  assert.ok(role)
  const began = performance.now()
  await supervision.stop()
  assert.ok(performance.now() - began >= 140)
  assert.equal(isAlive(role), false)
  assert.equal(existsSync(paths.pid(place.home, 'deaf')), false)
})

test('a role that stops answering is unready, and ready again when it answers', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([
    [place.role('api', 'while :; do if [ -e "$HERE/away" ]; then rm -f "$READY"; else touch "$READY"; fi; sleep 0.02; done')],
  ])
  await supervision.start()
  spawn('touch', [place.file('away')])
  assert.ok(await soon(() => supervision.reports[0]?.state === 'unready'))
  spawn('rm', [place.file('away')])
  assert.ok(await soon(() => supervision.reports[0]?.state === 'ready'))
  assert.equal(supervision.reports[0]?.restarts, 0)
})

test('what a role says is in its log, in order', async () => {
  await using place = new ScriptedHome()
  const supervision = place.supervise([[place.role('api', 'echo one; echo two >&2; touch "$READY"; exec sleep 300')]])
  await supervision.start()
  assert.ok(await soon(() => place.log('api') === 'one\ntwo\n' || place.log('api') === 'two\none\n'))
})

test('a role that a killed supervisor left is ended before a new one starts', async () => {
  await using place = new ScriptedHome()
  const orphan = spawn('sleep', ['300'], { env: { PATH: '/usr/bin:/bin', SANDGLASS_HOME: place.home }, stdio: 'ignore' })
  await once(orphan, 'spawn')
  assert.ok(orphan.pid)
  const supervision = place.supervise([[place.role('api', SERVE)]])
  writePidFile(place.home, 'api', orphan.pid)
  await supervision.endOrphans()
  assert.equal(identityOf(orphan.pid), undefined)
})

test('a process of another home, or a pid that was used again, is left alone', async () => {
  await using place = new ScriptedHome()
  const stranger = spawn('sleep', ['300'], { env: { PATH: '/usr/bin:/bin', SANDGLASS_HOME: '/somewhere/else' }, stdio: 'ignore' })
  await once(stranger, 'spawn')
  assert.ok(stranger.pid)
  const supervision = place.supervise([[place.role('api', SERVE)]])
  writePidFile(place.home, 'api', stranger.pid)
  assert.equal(readPidFile(place.home, 'api'), undefined)
  await supervision.endOrphans()
  assert.ok(identityOf(stranger.pid))
  stranger.kill('SIGKILL')
})
