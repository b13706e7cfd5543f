import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, Sandglass, SandglassError } from '../src/index.ts'
import { hurriedWorld } from './hurried-world.ts'
import { ScriptedSandboxes, wireProcess, wireSandbox } from './scripted-sandboxes.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

const API_KEY = `sgk_${'a'.repeat(43)}`

const clientOf = (server: ScriptedServer, world = hurriedWorld()) => new Sandglass({ url: server.url, apiKey: API_KEY, world })
const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

test('a create whose answer is lost is repeated with its key and gives the same sandbox (LI7)', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  sandboxes.dropAfterCommit = 2
  const sandbox = await Sandbox.create({ client: clientOf(server) })
  assert.equal(sandboxes.byKey.size, 1)
  assert.equal(sandbox.id, sandboxes.all[0]?.id)
  assert.equal(server.countOf('POST', /sandboxes$/), 3)
})

test('two creates have two keys', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const client = clientOf(server)
  await Sandbox.create({ client })
  await Sandbox.create({ client })
  assert.equal(sandboxes.byKey.size, 2)
})

test('a call joins the trace that its caller is in, and no other call does', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  let traceparent: string | undefined = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const client = new Sandglass({ url: server.url, apiKey: API_KEY, world: hurriedWorld(), traceparent: () => traceparent })
  const sandbox = await Sandbox.create({ client })
  assert.equal(server.asked[0]?.headers['traceparent'], traceparent)
  traceparent = undefined
  await sandbox.refresh()
  assert.equal(server.asked.at(-1)?.headers['traceparent'], undefined)
})

test('options are sent in the API’s words, and only those that were given', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  await Sandbox.create({ client: clientOf(server), template: 'base', resources: { memoryMb: 256 }, ttlSeconds: 60, env: { A: 'b' } })
  const { body, headers } = server.asked[0] ?? assert.fail('nothing was asked')
  assert.deepEqual(JSON.parse(body.toString()), { template: 'base', resources: { memory_mb: 256 }, ttl_seconds: 60, env: { A: 'b' } })
  assert.equal(headers.authorization, `Bearer ${API_KEY}`)
  assert.equal(headers['prefer'], 'wait=120')
})

test('503 with Retry-After waits at least that long and tries again', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  const world = hurriedWorld()
  let refusals = 2
  server.on('GET', /^\/v1\/sandboxes\/named$/, () =>
    refusals-- > 0 ? problem('overloaded', 'Busy.', { 'retry-after': '3' }) : { status: 200, json: wireSandbox(server) },
  )
  await Sandbox.get('named', { client: clientOf(server, world) })
  assert.deepEqual(world.waits, [3_050, 3_100])
})

test('a Retry-After beyond half a minute is not waited for', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /./, () => problem('overloaded', 'Busy.', { 'retry-after': '600' }))
  await assert.rejects(Sandbox.get('named', { client: clientOf(server) }), failsWith('overloaded'))
  assert.equal(server.asked.length, 1)
})

test('409 idempotency_in_progress is repeated', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  let first = true
  server.on('POST', /^\/v1\/sandboxes$/, () => {
    if (!first) return { status: 201, json: wireSandbox(server) }
    first = false
    return problem('idempotency_in_progress')
  })
  await Sandbox.create({ client: clientOf(server) })
  assert.equal(server.countOf('POST', /sandboxes$/), 2)
  assert.equal(sandboxes.byKey.size, 0)
})

test('attempts are bounded when nobody answers', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /./, () => 'drop')
  await assert.rejects(Sandbox.get('named', { client: clientOf(server) }), failsWith('unavailable'))
  assert.equal(server.asked.length, 5)
})

test('a refusal carries what the problem says', async () => {
  await using server = await ScriptedServer.start()
  server.on('POST', /./, () => ({
    status: 422,
    headers: { 'content-type': 'application/problem+json' },
    json: {
      type: '/docs/errors#unschedulable_never',
      title: 'No host can ever fit this',
      status: 422,
      detail: 'No host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1).',
      code: 'unschedulable_never',
      request_id: 'rqbbbbbbbbbbbbbbbb',
      retryable: false,
      errors: [{ path: '/resources/memory_mb', message: 'is too large' }],
      limit: { name: 'memory_mb', value: 23_552 },
    },
  }))
  await assert.rejects(Sandbox.create({ client: clientOf(server) }), (error: unknown) => {
    assert.ok(error instanceof SandglassError)
    assert.equal(error.code, 'unschedulable_never')
    assert.equal(error.requestId, 'rqbbbbbbbbbbbbbbbb')
    assert.equal(error.retryable, false)
    assert.deepEqual(error.limit, { name: 'memory_mb', value: 23_552 })
    assert.equal(error.errors[0]?.path, '/resources/memory_mb')
    assert.equal(error.docs, `${server.url}/docs/errors#unschedulable_never`)
    return true
  })
  assert.equal(server.asked.length, 1)
})

test('a code is documented on the server of the API, also when a gateway or a session says it', async () => {
  await using server = await ScriptedServer.start()
  await using gateway = await ScriptedServer.start()
  server.on('POST', /^\/v1\/sandboxes$/, () => ({ status: 201, json: wireSandbox(gateway) }))
  gateway.on('POST', /exec$/, () => problem('executable_not_found'))
  gateway.onSocket = (peer) => peer.status({ type: 'error', code: 'executable_not_found', detail: 'No.' })
  const sandbox = await Sandbox.create({ client: clientOf(server) })
  for (const call of [sandbox.exec(['x']), sandbox.spawn(['x'])]) {
    await assert.rejects(call, (error) => error instanceof SandglassError && error.docs === `${server.url}/docs/errors#executable_not_found`)
  }
  gateway.onSocket = (peer) => peer.socket.close(4410, 'It was deleted.')
  await assert.rejects(sandbox.spawn(['x']), (error) => error instanceof SandglassError && error.docs === `${server.url}/docs/errors#sandbox_ended`)
})

test('a session refuses a command with more environment than one frame holds, before the gateway cuts the connection', async () => {
  await using server = await ScriptedServer.start()
  server.on('POST', /^\/v1\/sandboxes$/, () => ({ status: 201, json: wireSandbox(server) }))
  const sandbox = await Sandbox.create({ client: clientOf(server) })
  const env = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`V${index}`, 'x'.repeat(20_000)]))
  await assert.rejects(sandbox.spawn(['x'], { env }), (error) => failsWith('limit_exceeded')(error) && /Write what is long to a file/.test(String(error)))
  assert.equal(server.sockets.length, 0)
})

test('answers that are not what the API describes are named errors, never half-read objects', async () => {
  await using server = await ScriptedServer.start()
  const client = clientOf(server)
  for (const body of ['{"id":"x"}', '<html>', '', '[]', 'null']) {
    server.on('GET', /./, () => ({ status: 200, body }))
    await assert.rejects(Sandbox.get('named', { client }), failsWith('internal'))
  }
  server.on('GET', /./, () => ({ status: 502, body: '<html>proxy</html>' }))
  await assert.rejects(Sandbox.get('named', { client }), failsWith('lost_contact'))
})

test('an aborted create throws the reason and leaves no sandbox', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const stop = new AbortController()
  let held = true
  server.on('POST', /^\/v1\/sandboxes$/, ({ headers }) => {
    const made = wireSandbox(server)
    sandboxes.byKey.set(String(headers['idempotency-key']), made)
    if (!held) return { status: 202, json: made }
    held = false
    stop.abort(new Error('enough'))
    return new Promise(() => undefined)
  })
  await assert.rejects(Sandbox.create({ client: clientOf(server), signal: stop.signal }), /enough/)
  assert.equal(sandboxes.byKey.size, 1)
  assert.deepEqual([...sandboxes.deleted], [wireSandbox(server).id])
})

test('a create that takes too long is client_timeout and leaves no sandbox', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  let held = true
  server.on('POST', /^\/v1\/sandboxes$/, ({ headers }) => {
    const made = wireSandbox(server)
    sandboxes.byKey.set(String(headers['idempotency-key']), made)
    if (!held) return { status: 202, json: made }
    held = false
    return new Promise(() => undefined)
  })
  await assert.rejects(Sandbox.create({ client: clientOf(server, hurriedWorld(0)), timeoutMs: 50 }), failsWith('client_timeout'))
  assert.equal(sandboxes.deleted.size, 1)
})

test('a start that fails is the problem of its operation', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  sandboxes.status = 'starting'
  const failed = { id: 'opaaaaaaaaaaaaaaaa', kind: 'sandbox.create', sandbox_id: 'x', created_at: 'x', ended_at: null }
  let asks = 0
  server.on('GET', /operations/, () => {
    asks += 1
    if (asks < 3) return { status: 200, json: { ...failed, status: 'pending', problem: null } }
    return { status: 200, json: { ...failed, status: 'failed', problem: problem('sandbox_start_failed', 'It did not start.').json } }
  })
  await assert.rejects(Sandbox.create({ client: clientOf(server) }), failsWith('sandbox_start_failed'))
  assert.equal(asks, 3)
})

test('wait: false gives the operation, which gives the sandbox', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  sandboxes.status = 'pending'
  const operation = await Sandbox.create({ client: clientOf(server), wait: false })
  assert.equal(operation.sandbox.status, 'pending')
  assert.equal(server.asked[0]?.headers['prefer'], undefined)
  sandboxes.status = 'ready'
  server.on('GET', /operations/, () => ({
    status: 200,
    json: { id: operation.id, kind: 'sandbox.create', status: 'succeeded', sandbox_id: operation.sandbox.id, problem: null, created_at: 'x', ended_at: 'x' },
  }))
  assert.equal((await operation.wait()).status, 'ready')
})

test('await using deletes, detach keeps', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const client = clientOf(server)
  {
    await using sandbox = await Sandbox.create({ client })
    sandbox.detach()
  }
  assert.equal(sandboxes.deleted.size, 0)
  {
    await using _sandbox = await Sandbox.create({ client })
  }
  assert.equal(sandboxes.deleted.size, 1)
})

test('lists are read page by page, only as far as they are used', async () => {
  await using server = await ScriptedServer.start()
  const ids = ['a', 'b', 'c', 'd'].map((letter) => `sbl1aaaaaaaaaaaaaaa${letter}`)
  server.on('GET', /^\/v1\/sandboxes$/, ({ query }) => {
    const start = Number(query.get('cursor') ?? 0)
    const items = ids.slice(start, start + 2).map((id) => wireSandbox(server, { id }))
    return { status: 200, json: { items, next_cursor: start + 2 < ids.length ? String(start + 2) : null } }
  })
  const client = clientOf(server)
  const seen: string[] = []
  for await (const sandbox of Sandbox.list({ client, status: 'ready' })) seen.push(sandbox.id)
  assert.deepEqual(seen, ids)
  assert.equal(server.asked[0]?.query.get('status'), 'ready')
  for await (const _ of Sandbox.list({ client })) break
  assert.equal(server.asked.length, 3)
})

test('getOrCreate finds what another client made in between', async () => {
  await using server = await ScriptedServer.start()
  let made = false
  server.on('GET', /^\/v1\/sandboxes\/build$/, () => (made ? { status: 200, json: wireSandbox(server, { name: 'build' }) } : problem('sandbox_not_found')))
  server.on('POST', /^\/v1\/sandboxes$/, () => {
    made = true
    return problem('name_taken')
  })
  const sandbox = await Sandbox.getOrCreate({ name: 'build', client: clientOf(server) })
  assert.equal(sandbox.name, 'build')
})

test('a named sandbox that failed is refused with what to do, and replaced where the caller says so', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const failed = wireSandbox(server, { id: 'sbl1bbbbbbbbbbbbbbbb', name: 'build', status: 'failed', status_reason: 'out_of_memory' })
  server.on('GET', /sandboxes\/build$/, () => (sandboxes.deleted.has(failed.id) ? problem('sandbox_not_found') : { status: 200, json: failed }))
  const client = clientOf(server)
  await assert.rejects(Sandbox.getOrCreate({ name: 'build', client }), (error) => {
    assert.ok(error instanceof SandglassError && error.code === 'sandbox_failed')
    assert.match(
      error.message,
      /^Sandbox build \(sbl1b+\) is failed \(out_of_memory\)\. Start it anew \(`sandbox\.start\(\)`\), or delete it and create a new one: .*replaceFailed/,
    )
    return error.docs === `${server.url}/docs/errors#sandbox_failed`
  })
  assert.equal(sandboxes.deleted.size, 0)
  const sandbox = await Sandbox.getOrCreate({ name: 'build', replaceFailed: true, client })
  assert.deepEqual([sandbox.wasCreated, [...sandboxes.deleted], sandbox.id === failed.id], [true, [failed.id], false])
})

test('getOrCreate refuses a misspelt option also where there is a sandbox to be found', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /sandboxes\/build$/, () => ({ status: 200, json: wireSandbox(server, { name: 'build' }) }))
  const options = { name: 'build', client: clientOf(server), ttlSecond: 60 }
  await assert.rejects(Sandbox.getOrCreate(options), (error) => failsWith('invalid_request')(error) && /no option `ttlSecond`/.test(String(error)))
})

test('getOrCreate without a name, which only plain JavaScript can write, makes nothing', async () => {
  await using server = await ScriptedServer.start()
  const words: unknown = 'build'
  // @ts-expect-error a name as text, where options belong
  await assert.rejects(Sandbox.getOrCreate(words), (error: unknown) => error instanceof SandglassError && error.code === 'invalid_request')
  assert.equal(server.asked.length, 0)
})

test('an option that there is not, which plain JavaScript can write, is refused by name, and nothing is sent', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const client = clientOf(server)
  const refused = async (call: Promise<unknown>, says: RegExp): Promise<void> =>
    assert.rejects(call, (error: unknown) => failsWith('invalid_request')(error) && error instanceof Error && says.test(error.message))
  const misspelt = { client, ttl: 60 }
  await refused(Sandbox.create(misspelt), /^Sandbox\.create has no option `ttl`; it has .*\bttlSeconds\b/)
  const resources = { vcpu: 1, memory_mb: 256 }
  await refused(Sandbox.create({ client, resources }), /^resources has no option `memory_mb`; it has diskGb, memoryMb, vcpu\.$/)
  assert.equal(sandboxes.byKey.size, 0)
  const sandbox = await Sandbox.create({ client, wait: true, signal: AbortSignal.timeout(10_000), timeoutMs: 10_000, ttlSeconds: 60 })
  const command = { cwd: '/', timeout: 1 }
  const sent = server.asked.length
  await refused(sandbox.exec(['true'], command), /^exec has no option `timeout`; it has .*\btimeoutMs\b/)
  await refused(sandbox.exec.shell('true', command), /^exec has no option `timeout`/)
  await refused(sandbox.start(['true'], command), /^start has no option `timeout`/)
  await refused(sandbox.spawn(['true'], command), /^spawn has no option `timeout`/)
  await refused(sandbox.terminal(command), /^terminal has no option `timeout`/)
  const joining = { stdin: true, sinceStdOut: 5 }
  await refused(sandbox.attach('key:a', joining), /^attach has no option `sinceStdOut`; it has .*\bsinceStdout\b/)
  const careful = { user: 'root', ifmatch: '"1"' }
  await refused(sandbox.files.write('/a', 'text', careful), /^files\.write has no option `ifmatch`; it has ifMatch, /)
  await refused(sandbox.files.read('/a', careful), /^files\.open has no option `ifmatch`; it has ifMatch, /)
  const from = { signal: AbortSignal.timeout(10_000), from: 5 }
  await refused(sandbox.files.watch('/a', from).next(), /^watch has no option `from`/)
  await refused(client.events(from).next(), /^events has no option `from`; it has .*\bsince\b/)
  assert.equal(server.asked.length, sent)
  server.on('GET', /processes\/key/, () => ({ status: 200, json: wireProcess() }))
  const process = await sandbox.process('key:a')
  await refused(process.output(from).next(), /^output has no option `from`; it has .*\bsince\b/)
})
