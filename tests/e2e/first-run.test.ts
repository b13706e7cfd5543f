/** The main job from end to end: `sandglass run` prints 42, out of a gVisor sandbox that is there during it and gone after it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from './bounds.ts'
import { BackgroundCommand } from './cli/background.ts'
import { sharedInstallation } from './file-installation.ts'
import { isSentry, sentriesOf } from './sentries.ts'

test("./sandglass run -- python3 -c 'print(6*7)' prints 42 and nothing else", async () => {
  const installation = await sharedInstallation()
  const { code, stdout, stderr } = await installation.launcher(['run', '--', 'python3', '-c', 'print(6*7)'])
  assert.equal(stderr, '')
  assert.equal(stdout.toString('utf8'), '42\n')
  assert.equal(code, 0)
})

test("the kernel inside is gVisor's, not this machine's", async () => {
  const installation = await sharedInstallation()
  const inside = await installation.ok(['run', '--', 'sh', '-c', 'dmesg; cat /proc/version; uname -r'])
  assert.match(inside, /gVisor/, 'the kernel log inside is that of gVisor.')
  const outside = await import('node:os').then((os) => os.release())
  assert.equal(inside.includes(outside), false, `the kernel inside is not ${outside}.`)
})

test('a sentry of that sandbox lives during the command, and none after it', async () => {
  const installation = await sharedInstallation()
  const before = new Set((await installation.sandboxes()).map(({ id }) => id))
  await using command = new BackgroundCommand(installation, ['run', '-i', '--', 'sh', '-c', 'echo started; cat; python3 -c "print(6*7)"'])
  await command.shows(/started/)
  const [sandbox, ...others] = (await installation.sandboxes()).filter(({ id }) => !before.has(id))
  assert.ok(sandbox !== undefined && others.length === 0, 'the command made one sandbox.')
  assert.equal(sandbox.status, 'ready')
  assert.equal(sandbox.resource.isolation?.driver, 'gvisor')
  const [sentry, ...more] = sentriesOf(installation.home, sandbox.id)
  assert.ok(sentry !== undefined && more.length === 0, 'one live sentry belongs to the sandbox.')
  command.endInput()
  assert.deepEqual(await command.ended(), { code: 0, signal: null })
  assert.equal(command.stdout, 'started\n42\n')
  assert.equal(command.stderr, '')
  await until(30_000, 'the sentry is gone', () => !isSentry(installation.home, sentry.pid))
  const left = await installation.sandboxes()
  assert.equal(
    left.some(({ id }) => id === sandbox.id),
    false,
    'the sandbox is not listed any more.',
  )
})
