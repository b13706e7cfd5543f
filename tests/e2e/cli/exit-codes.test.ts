/** Exit codes as Docker's and coreutils' are: the command's own, 124 timed out, 125 refused, 126 not executable, 127 not found, 128+n signal. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { Sandbox } from '@sandglass/sdk'
import { until } from '../bounds.ts'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import type { Installation } from '../installation.ts'
import { isSentry, sentriesOf } from '../sentries.ts'
import { BackgroundCommand } from './background.ts'

let installation: Installation
let sandbox: Sandbox
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 900 })
})
afterTests(() => sandbox?.delete())

const COMMANDS: readonly { readonly argv: readonly string[]; readonly options?: readonly string[]; readonly code: number; readonly says?: RegExp }[] = [
  { argv: ['true'], code: 0 },
  { argv: ['false'], code: 1 },
  { argv: ['sh', '-c', 'exit 7'], code: 7 },
  { argv: ['sh', '-c', 'exit 255'], code: 255 },
  { argv: ['sleep', '100'], options: ['--timeout', '1'], code: 124, says: /\[process_timed_out\]/ },
  { argv: ['/etc/passwd'], code: 126, says: /\[executable_not_runnable\]/ },
  { argv: ['/no/such'], code: 127, says: /\[executable_not_found\]/ },
  { argv: ['sh', '-c', 'kill -TERM $$'], code: 143 },
  { argv: ['sh', '-c', 'kill -KILL $$'], code: 137 },
  { argv: ['true'], options: ['--user', 'no-such-user'], code: 125, says: /\[user_not_found\]/ },
  { argv: ['true'], options: ['--cwd', '/no/such'], code: 125, says: /\[cwd_not_found\]/ },
]

for (const { argv, options = [], code, says } of COMMANDS) {
  test(`exec ${[...options, '--', ...argv].join(' ')} exits ${code}`, async () => {
    const result = await installation.cli(['exec', sandbox.id, ...options, '--', ...argv])
    assert.equal(result.code, code, result.stderr)
    if (says === undefined) assert.equal(result.stderr, '')
    else assert.match(result.stderr, says)
    if (says !== undefined) assert.equal(result.stderr.trim().split('\n').length, 1, 'an error is one line')
  })
}

test('run passes the exit code through, and no sandbox is left', async () => {
  const idsNow = async () => (await installation.sandboxes()).map(({ id }) => id)
  const before = await idsNow()
  const result = await installation.cli(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 42'])
  assert.deepEqual([result.code, result.stdout.toString('utf8'), result.stderr], [42, 'out\n', 'err\n'])
  assert.deepEqual(await idsNow(), before)
})

test('what can never fit is refused with 125 and a sentence', async () => {
  const result = await installation.cli(['run', '--memory', '999999', '--', 'true'])
  assert.equal(result.code, 125)
  assert.equal(result.stdout.toString('utf8'), '')
  assert.match(result.stderr, /^sandglass: .*999,?999 MB.*\[unschedulable_never\]\n$/)
})

test('unknown sandboxes, bad flags and unknown commands exit 125', async () => {
  for (const args of [
    ['exec', 'sbl1aaaaaaaaaaaaaaaa', '--', 'true'],
    ['inspect', 'no-such-name'],
    ['run', '--no-such-flag', '--', 'true'],
    ['no-such-command'],
    ['run', '--memory', 'much', '--', 'true'],
  ]) {
    const result = await installation.cli(args)
    assert.equal(result.code, 125, `sandglass ${args.join(' ')}: ${result.stderr}`)
    assert.match(result.stderr, /^sandglass: /)
  }
})

test('output and input are bytes, in both directions', async () => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 7 + (index >> 8)) % 256))
  const result = await installation.cli(['exec', sandbox.id, '-i', '--', 'cat'], { stdin: bytes })
  assert.equal(result.code, 0, result.stderr)
  assert.equal(result.stdout.equals(bytes), true, 'what was fed comes back')
  const closed = await installation.cli(['exec', sandbox.id, '--', 'cat'], { stdin: bytes })
  assert.deepEqual([closed.code, closed.stdout.byteLength], [0, 0], 'without -i the command has no input')
})

test('Ctrl-C ends the command and the sandbox that run made', async () => {
  const before = new Set((await installation.sandboxes()).map(({ id }) => id))
  await using command = new BackgroundCommand(installation, ['run', '--', 'sh', '-c', 'echo started; exec sleep 1000'])
  await command.shows(/started/)
  const [made] = (await installation.sandboxes()).filter(({ id }) => !before.has(id))
  assert.ok(made !== undefined)
  const [sentry] = sentriesOf(installation.home, made.id)
  assert.ok(sentry !== undefined)
  command.interrupt()
  const { code } = await command.ended(20_000)
  assert.equal(code, 130)
  await until(20_000, 'its sandbox is gone', async () => (await installation.sandboxes()).every(({ id }) => id !== made.id))
  await until(30_000, 'its sentry is gone', () => !isSentry(installation.home, sentry.pid))
})

test('Ctrl-C of exec ends the command inside and leaves the sandbox', async () => {
  await using command = new BackgroundCommand(installation, ['exec', sandbox.id, '--', 'sh', '-c', 'echo started; exec sleep 1234'])
  await command.shows(/started/)
  command.interrupt()
  assert.equal((await command.ended(20_000)).code, 130)
  await until(30_000, 'the command inside is gone', async () => (await sandbox.processes()).every((process) => !process.running))
  assert.equal((await sandbox.refresh()).status, 'ready')
})
