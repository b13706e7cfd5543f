/** What a mock and a real installation have in common: one suite for both. It uses only programs that both have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract/limits'
import { Sandbox, type Sandglass, SandglassError } from '../src/index.ts'

const refused =
  (code: string, words = /./) =>
  (error: unknown) =>
    error instanceof SandglassError && error.code === code && words.test(error.message)
const unique = (): string => `c${crypto.randomUUID().slice(0, 8)}`

async function all(output: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of output) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** @param clientOf made before the first test */
export function contractSuite(clientOf: () => Promise<Sandglass>): void {
  const inSandbox = (title: string, check: (sandbox: Sandbox, client: Sandglass) => Promise<void>) =>
    test(title, { timeout: 120_000 }, async () => {
      const client = await clientOf()
      await using sandbox = await Sandbox.create({ client, ttlSeconds: 600, env: { GREETING: 'hello' } })
      await check(sandbox, client)
    })

  test('a sandbox has a life: created, found, listed, changed, extended, deleted', { timeout: 120_000 }, async () => {
    const client = await clientOf()
    const name = unique()
    const sandbox = await Sandbox.create({ client, name, ttlSeconds: 600, metadata: { run: name }, env: { A: '1' } })
    assert.deepEqual([sandbox.status, sandbox.name, sandbox.resource.env_names, sandbox.resource.generation >= 1], ['ready', name, ['A'], true])
    assert.equal((await Sandbox.get(name, { client })).id, sandbox.id)
    const listed: string[] = []
    for await (const item of Sandbox.list({ client, metadata: { key: 'run', value: name } })) listed.push(item.id)
    assert.deepEqual(listed, [sandbox.id])
    await assert.rejects(Sandbox.create({ client, name }), refused('name_taken', new RegExp(`taken by sandbox ${sandbox.id}, which is ready\\. .*delete it`)))
    await assert.rejects(Sandbox.create({ client, template: 'no-such-template' }), refused('template_not_found', /no template no-such-template\. There .*base/))
    const found = await Sandbox.getOrCreate({ client, name, ttlSeconds: 3_000 })
    assert.deepEqual([found.id, found.wasCreated, sandbox.wasCreated, found.expiresAt], [sandbox.id, false, true, sandbox.expiresAt])
    const made = await Sandbox.getOrCreate({ client, name: unique(), ttlSeconds: 600 })
    assert.equal(made.wasCreated, true)
    await made.delete()
    const before = sandbox.expiresAt.getTime()
    assert.equal((await sandbox.extend(60)).expiresAt.getTime(), before, 'never nearer')
    assert.ok((await sandbox.extend(3_600)).expiresAt.getTime() > before)
    const other = unique()
    assert.equal((await sandbox.update({ name: other, metadata: {} })).name, other)
    await sandbox.delete()
    await sandbox.delete()
    await assert.rejects(Sandbox.get(other, { client }), refused('sandbox_not_found', new RegExp(`There is no sandbox ${other}\\.`)))
    await assert.rejects(sandbox.exec(['true']), refused('sandbox_ended', /deleted: on request/))
    await assert.rejects(Sandbox.get('sbl1aaaaaaaaaaaaaaaa', { client }), refused('sandbox_not_found'))
  })

  test('stop and start: the record stays, what was written goes; twice is fine', { timeout: 120_000 }, async () => {
    const client = await clientOf()
    const name = unique()
    await using sandbox = await Sandbox.create({ client, name, ttlSeconds: 600, env: { A: '1' }, restartPolicy: 'on_host_loss' })
    await sandbox.files.write('/tmp/kept', 'no')
    const process = await sandbox.start(['sleep', '600'])
    const before = sandbox.resource.generation
    await sandbox.stop()
    assert.deepEqual([sandbox.status, sandbox.resource.desired, sandbox.resource.writable_layer, sandbox.name], ['stopped', 'stopped', 'gone', name])
    assert.equal((await sandbox.stop()).resource.generation, before + 1)
    assert.ok(sandbox.expiresAt.getTime() > Date.parse(sandbox.resource.created_at) + 29 * 24 * 3_600_000, 'kept longer than it would have run')
    await assert.rejects(sandbox.exec(['true']), refused('sandbox_stopped', /is stopped\. Start it/))
    await assert.rejects(Sandbox.getOrCreate({ client, name }), refused('sandbox_stopped', /Start it/))
    await assert.rejects(Sandbox.create({ client, name }), refused('name_taken', /which is stopped/))
    await sandbox.start()
    assert.deepEqual([sandbox.status, sandbox.resource.writable_layer, sandbox.resource.restart_policy], ['ready', 'present', 'on_host_loss'])
    const { generation } = sandbox.resource
    assert.ok(generation > before + 1)
    assert.equal((await sandbox.start()).resource.generation, generation)
    assert.ok(sandbox.expiresAt.getTime() < Date.parse(sandbox.resource.created_at) + 3_600_000, 'its own life again')
    assert.equal(await sandbox.files.exists('/tmp/kept'), false)
    await assert.rejects(sandbox.process(process.id), refused('process_not_found'))
    assert.equal((await sandbox.exec(['printenv', 'A'])).stdout, '1\n')
    await sandbox.stop()
    await sandbox.delete()
    await assert.rejects(sandbox.start(), refused('sandbox_ended'))
    await assert.rejects(sandbox.stop(), refused('sandbox_ended'))
  })

  test('a repeat with its key is the same sandbox, another body is refused', { timeout: 120_000 }, async () => {
    const client = await clientOf()
    const idempotencyKey = unique()
    await using first = await Sandbox.create({ client, idempotencyKey, ttlSeconds: 600 })
    assert.equal((await Sandbox.create({ client, idempotencyKey, ttlSeconds: 600 })).id, first.id)
    await assert.rejects(Sandbox.create({ client, idempotencyKey, ttlSeconds: 601 }), refused('idempotency_key_reused'))
  })

  inSandbox('commands: output, exit codes, environment, directory, what cannot start', async (sandbox) => {
    assert.deepEqual(await sandbox.exec(['echo', 'a b', 'c']).then(({ stdout, stderr, exitCode, signal }) => [stdout, stderr, exitCode, signal]), [
      'a b c\n',
      '',
      0,
      null,
    ])
    assert.equal((await sandbox.exec(['false'])).exitCode, 1)
    await assert.rejects(sandbox.exec(['false'], { check: true }), refused('command_failed'))
    assert.equal((await sandbox.exec(['printenv', 'GREETING'])).stdout, 'hello\n')
    assert.equal((await sandbox.exec(['printenv', 'X'], { env: { X: 'y' } })).stdout, 'y\n')
    assert.equal((await sandbox.exec(['pwd'], { cwd: '/tmp' })).stdout, '/tmp\n')
    assert.equal((await sandbox.exec(['cat'], { stdin: 'fed' })).stdout, 'fed')
    const missing = await sandbox.exec(['cat', '/no/such'])
    assert.deepEqual([missing.exitCode, missing.stderr], [1, 'cat: /no/such: No such file or directory\n'])
    await assert.rejects(sandbox.exec(['no-such-program']), refused('executable_not_found'))
    await assert.rejects(sandbox.exec(['true'], { cwd: '/no/such' }), refused('cwd_not_found'))
  })

  inSandbox('a command that cannot be sent is refused in the same words whichever way it would go', async (sandbox) => {
    const told = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const errors = await Promise.all(
        [sandbox.exec(argv, { env }), sandbox.spawn(argv, { env }), sandbox.start(argv, { env })].map(async (call) => {
          const error: unknown = await call.then(
            () => assert.fail('it ran'),
            (refusal: unknown) => refusal,
          )
          assert.ok(error instanceof SandglassError)
          return { code: error.code, message: error.message, errors: error.errors, limit: error.limit }
        }),
      )
      for (const error of errors) assert.deepEqual(error, errors[0])
      return errors[0]
    }
    const nul = '/argv/1 must hold no NUL character: write such bytes to a file'
    assert.deepEqual(await told(['echo', 'a\0b']), {
      code: 'invalid_request',
      message: `${nul}.`,
      errors: [{ path: '/argv/1', message: nul.slice('/argv/1 '.length) }],
      limit: undefined,
    })
    for (const bytes of [LIMITS.argvBytes, 4 * LIMITS.argvBytes]) {
      const error = await told(['echo', 'x'.repeat(bytes)])
      assert.deepEqual([error?.code, error?.limit], ['limit_exceeded', { name: 'argvBytes', value: LIMITS.argvBytes }])
      assert.match(error?.message ?? '', /Write what is long to a file/)
    }
  })

  inSandbox('a command that runs out of time is ended, and the error holds what it printed', async (sandbox) => {
    await assert.rejects(sandbox.exec(['sleep', '60'], { timeoutMs: 200 }), (error) => {
      assert.ok(refused('process_timed_out')(error))
      return error instanceof SandglassError && error.result?.timedOut === true && error.result.exitCode === null
    })
    assert.equal((await sandbox.exec(['true'])).exitCode, 0)
  })

  inSandbox('streams: input, output, end, kill', async (sandbox) => {
    const cat = await sandbox.spawn(['cat'], { stdin: true })
    await cat.stdin.write('one ')
    await cat.stdin.write('two')
    cat.stdin.close()
    assert.equal(await cat.stdout.readText(), 'one two')
    assert.equal((await cat.exit).exitCode, 0)
    const sleeper = await sandbox.spawn(['sleep', '60'])
    await sleeper.kill()
    const exit = await sleeper.exit
    assert.deepEqual([exit.exitCode, exit.signal, exit.timedOut], [null, 'KILL', false])
    await assert.rejects(sleeper.kill(), refused('process_exited'))
  })

  inSandbox('input of two clients: who was overtaken is told so, and nothing of it is lost in silence', async (sandbox) => {
    const first = await sandbox.spawn(['cat'], { stdin: true })
    const second = await sandbox.attach(first.id, { stdin: true })
    await second.stdin.write('from b\n')
    assert.equal(Buffer.from((await second.stdout.read()) ?? []).toString(), 'from b\n')
    // It resolves when the bytes are on their way; that they came too late is told by what is waited for.
    await first.stdin.write('from a, and longer\n')
    await assert.rejects(first.exit, refused('stdin_offset'))
    await assert.rejects(first.stdin.write('more'), refused('stdin_offset'))
    const again = await sandbox.attach(first.id, { stdin: true })
    await again.stdin.write('a again\n')
    again.stdin.close()
    assert.equal(await again.stdout.readText(), 'from b\na again\n')
    assert.equal((await again.exit).exitCode, 0)
  })

  inSandbox('input of a client that only reads is refused at once', async (sandbox) => {
    const first = await sandbox.spawn(['cat'], { stdin: true })
    const reader = await sandbox.attach(first.id)
    await assert.rejects(reader.stdin.write('x\n'), refused('stdin_closed', /attach with `stdin: true`/))
    await first.stdin.write('one')
    first.stdin.close()
    assert.equal(await reader.stdout.readText(), 'one')
    const without = await sandbox.spawn(['sleep', '60'])
    await assert.rejects(without.stdin.write('x\n'), refused('stdin_closed', /spawn it with `stdin: true`/))
    await without.kill()
  })

  inSandbox('processes are found again, with their output from any byte', async (sandbox) => {
    const started = await sandbox.start(['echo', '0123456789'], { processKey: 'mine' })
    assert.equal((await sandbox.start(['echo', '0123456789'], { processKey: 'mine' })).id, started.id)
    // Followed to its end first: an offset must have been written before it can be asked for.
    assert.equal(await all(started.output({ follow: true })), '0123456789\n')
    assert.equal(await all(started.output({ since: 4, follow: true })), '456789\n')
    const again = await sandbox.process('key:mine')
    assert.deepEqual([again.id, again.running, again.resource.exit_code], [started.id, false, 0])
    assert.ok((await sandbox.processes()).some(({ id }) => id === started.id))
    const attached = await sandbox.attach(started.id)
    assert.equal(await attached.stdout.readText(), '0123456789\n')
    await assert.rejects(sandbox.process('praaaaaaaaaaaaaaaa'), refused('process_not_found'))
  })

  inSandbox('files: written whole, read, listed, moved, removed, refused by name', async (sandbox) => {
    const { files } = sandbox
    const { size } = await files.write('/tmp/a/b.txt', 'grüße', { parents: true })
    assert.equal(size, 7)
    assert.equal(await files.readText('/tmp/a/b.txt'), 'grüße')
    const info = await files.stat('/tmp/a/b.txt')
    assert.deepEqual([info.name, info.type, info.size, info.path], ['b.txt', 'file', 7, '/tmp/a/b.txt'])
    await files.mkdir('/tmp/a/c')
    const names: string[] = []
    for await (const { name, type } of files.list('/tmp/a')) names.push(`${name} ${type}`)
    assert.deepEqual(names, ['b.txt file', 'c directory'])
    await files.move('/tmp/a/b.txt', '/tmp/a/c/d.txt')
    assert.deepEqual([await files.exists('/tmp/a/b.txt'), await files.exists('/tmp/a/c/d.txt')], [false, true])
    assert.equal((await sandbox.exec(['cat', '/tmp/a/c/d.txt'])).stdout, 'grüße')
    await assert.rejects(files.read('/tmp/none'), refused('file_not_found'))
    await assert.rejects(files.read('/tmp/a'), refused('is_a_directory'))
    await assert.rejects(files.write('/tmp/x/y', ''), refused('file_not_found'))
    await assert.rejects(files.mkdir('/tmp/a/c'), refused('file_exists'))
    await assert.rejects(files.read('relative'), refused('path_invalid'))
    await assert.rejects(files.remove('/tmp/a'), refused('directory_not_empty'))
    await files.remove('/tmp/a', { recursive: true })
    assert.equal(await files.exists('/tmp/a'), false)
  })
}
