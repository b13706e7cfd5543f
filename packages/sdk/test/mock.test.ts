/** The mock against the suite that a real installation passes too, and what only a mock can: time, failures, scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, SandglassError } from '../src/index.ts'
import { MockSandglass } from '../src/mock/index.ts'
import { contractSuite } from './mock-contract.ts'

const shared = new MockSandglass()
contractSuite(async () => shared.client)

const refused = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

test('programs and shells are scripted: streams, files, exit codes, a crash', async () => {
  const mock = new MockSandglass()
  mock.program('make', async ({ argv, files, write, writeError, sleep }) => {
    write(`building ${argv[1]}\n`)
    await sleep(60_000)
    files.write('/srv/out', 'built')
    writeError('a warning\n')
    return 3
  })
  mock.program('crash', () => {
    throw new Error('it broke')
  })
  mock.shell(({ line, write }) => {
    write(`ran ${line}`)
    return 0
  })
  await using sandbox = await Sandbox.create({ client: mock.client, name: 'box' })
  const make = await sandbox.spawn(['/usr/bin/make', 'all'])
  assert.equal((await make.stdout[Symbol.asyncIterator]().next()).value?.byteLength, 'building all\n'.length)
  mock.advance(60_000)
  assert.deepEqual([(await make.exit).exitCode, await make.stderr.readText()], [3, 'a warning\n'])
  assert.ok((await make.exit).durationMs >= 60_000)
  assert.equal(await sandbox.files.readText('/srv/out'), 'built')
  assert.equal(new TextDecoder().decode(mock.files('box').read('/srv/out')), 'built')
  assert.deepEqual(await sandbox.exec(['crash']).then(({ exitCode, stderr }) => [exitCode, stderr]), [70, 'it broke\n'])
  assert.equal((await sandbox.exec.shell('a | b')).stdout, 'ran a | b')
})

test('time passes when it is told to: deadlines, timeouts', async () => {
  const mock = new MockSandglass()
  const sandbox = await Sandbox.create({ client: mock.client, ttlSeconds: 600 })
  const late = sandbox.exec(['sleep', '500'], { timeoutMs: 100_000 })
  await new Promise((resolve) => setImmediate(resolve))
  mock.advance(100_000)
  await assert.rejects(late, refused('process_timed_out'))
  mock.advance(499_000)
  assert.equal((await sandbox.refresh()).status, 'ready')
  mock.advance(2_000)
  assert.equal((await sandbox.refresh()).status, 'terminated')
  await assert.rejects(sandbox.exec(['true']), refused('sandbox_ended'))
})

test('the end of nobody using it, which each use moves away, stops or deletes', async () => {
  const mock = new MockSandglass()
  const sandbox = await Sandbox.create({ client: mock.client, idleTimeoutSeconds: 60, onTimeout: 'stop' })
  mock.advance(50_000)
  await sandbox.exec(['true'])
  mock.advance(50_000)
  assert.equal((await sandbox.refresh()).status, 'ready')
  mock.advance(10_000)
  assert.equal((await sandbox.refresh()).status, 'stopped')
  const other = await Sandbox.create({ client: mock.client, idleTimeoutSeconds: 60 })
  mock.advance(60_000)
  assert.match((await other.refresh()).resource.status_reason ?? '', /^idle_timeout: /)
})

test('failures: refusals, lost answers that the client repeats, sessions that break and go on', async () => {
  const mock = new MockSandglass()
  mock.fail({ error: 'quota_exceeded', method: 'POST', path: /\/sandboxes$/ })
  await assert.rejects(Sandbox.create({ client: mock.client }), refused('quota_exceeded'))
  mock.fail({ error: 'lost', method: 'POST', path: /\/sandboxes$/, afterwards: true })
  await using sandbox = await Sandbox.create({ client: mock.client })
  const found: string[] = []
  for await (const { id } of Sandbox.list({ client: mock.client })) found.push(id)
  assert.deepEqual(found, [sandbox.id], 'a repeat after a lost answer never makes two')
  assert.equal(mock.requests.filter(({ method, path }) => method === 'POST' && path === '/v1/sandboxes').length, 3)
  const cat = await sandbox.spawn(['cat'], { stdin: true })
  await cat.stdin.write('before ')
  mock.cutConnections()
  await cat.stdin.write('after')
  cat.stdin.close()
  assert.equal(await cat.stdout.readText(), 'before after')
  assert.equal((await cat.exit).exitCode, 0)
})

test('what a mock does not do it refuses in words', async () => {
  const mock = new MockSandglass()
  await using sandbox = await Sandbox.create({ client: mock.client })
  await assert.rejects(sandbox.terminal(), /no terminals/)
  await assert.rejects(sandbox.files.chmod('/tmp', { mode: 0o700 }), /does not answer POST/)
  await assert.rejects(sandbox.exec(['make']), /script it with mock\.program/)
})
