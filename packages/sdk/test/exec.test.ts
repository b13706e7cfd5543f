import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, Sandglass, SandglassError } from '../src/index.ts'
import { hurriedWorld } from './hurried-world.ts'
import { ScriptedProcess } from './scripted-process.ts'
import { ScriptedSandboxes, wireProcess } from './scripted-sandboxes.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

async function sandboxOn(server: ScriptedServer): Promise<Sandbox> {
  new ScriptedSandboxes(server)
  return Sandbox.create({ client: new Sandglass({ url: server.url, apiKey: `sgk_${'a'.repeat(43)}`, world: hurriedWorld() }) })
}

const result = {
  process_id: 'praaaaaaaaaaaaaaaa',
  exit_code: 0,
  signal: null,
  stdout: '42\n',
  stderr: '',
  encoding: { stdout: 'utf-8', stderr: 'utf-8' },
  truncated: false,
  timed_out: false,
  output_open: false,
  duration_ms: 5,
}

test('arguments go as they are, bytes where text cannot hold them, a shell only when asked', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('POST', /exec$/, () => ({ status: 200, json: result }))
  const { stdout, exitCode } = await sandbox.exec(['echo', '$HOME; rm -rf "x"'], { cwd: '/w', env: { A: '1' }, user: 'me', timeoutMs: 1_500.2 })
  assert.equal(stdout, '42\n')
  assert.equal(exitCode, 0)
  const { process_key: key, ...body } = JSON.parse(String(server.asked.at(-1)?.body))
  assert.deepEqual(body, { argv: ['echo', '$HOME; rm -rf "x"'], cwd: '/w', env: { A: '1' }, user: 'me', timeout_ms: 1_501 })
  assert.match(key, /^[A-Za-z0-9._:-]{1,128}$/)
  await sandbox.exec(['cat', Uint8Array.from([0xff])])
  assert.deepEqual(JSON.parse(String(server.asked.at(-1)?.body)).argv_b64, ['Y2F0', '/w=='])
  await sandbox.exec.shell('a | b')
  assert.equal(JSON.parse(String(server.asked.at(-1)?.body)).shell, 'a | b')
})

test('a lost answer is asked for again with the same process key', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  let drops = 3
  server.on('POST', /exec$/, () => (drops-- > 0 ? 'drop' : { status: 200, json: result }))
  await sandbox.exec(['true'])
  const keys = server.asked.filter(({ path }) => path.endsWith('exec')).map(({ body }) => JSON.parse(String(body)).process_key)
  assert.equal(keys.length, 4)
  assert.equal(new Set(keys).size, 1)
})

test('output that is not UTF-8 is exact as bytes', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const bytes = Buffer.from('a\0b\xff\n\n\n b\r\nc', 'latin1')
  server.on('POST', /exec$/, () => ({ status: 200, json: { ...result, stdout: bytes.toString('base64'), encoding: { stdout: 'base64', stderr: 'utf-8' } } }))
  const { stdoutBytes, stdout } = await sandbox.exec(['x'])
  assert.ok(bytes.equals(stdoutBytes))
  assert.ok(stdout.includes('\uFFFD'))
})

test('an exit code is a result, with check an error that holds the result; a timeout always is', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('POST', /exec$/, () => ({ status: 200, json: { ...result, exit_code: 3, stderr: 'first\nno such file\n' } }))
  assert.equal((await sandbox.exec(['x'])).exitCode, 3)
  await assert.rejects(sandbox.exec(['x', 'y'], { check: true }), (error: unknown) => {
    assert.ok(failsWith('command_failed')(error) && error instanceof SandglassError)
    assert.equal(error.result?.exitCode, 3)
    assert.equal(error.message, '`x y` exited with 3. Its last line of error output: no such file')
    return true
  })
  server.on('POST', /exec$/, () => ({ status: 200, json: { ...result, exit_code: null, signal: 'KILL', timed_out: true, stdout: 'so far' } }))
  await assert.rejects(sandbox.exec(['sleep', '100'], { timeoutMs: 1_000 }), (error: unknown) => {
    assert.ok(failsWith('process_timed_out')(error) && error instanceof SandglassError)
    assert.equal(error.result?.stdout, 'so far')
    return true
  })
})

test('an aborted exec throws the reason and kills what it started', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const stop = new AbortController()
  let key = ''
  server.on('POST', /exec$/, ({ body }) => {
    key = JSON.parse(String(body)).process_key
    stop.abort(new Error('enough'))
    return new Promise(() => undefined)
  })
  server.on('POST', /signal$/, () => ({ status: 200, json: wireProcess() }))
  await assert.rejects(sandbox.exec(['sleep', '100'], { signal: stop.signal }), /enough/)
  const killed = server.asked.at(-1)
  assert.equal(decodeURIComponent(killed?.path ?? ''), `/v1/sandboxes/${sandbox.id}/processes/key:${key}/signal`)
})

test('small input goes with the request, large input and streams over a session', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('POST', /exec$/, () => ({ status: 200, json: result }))
  await sandbox.exec(['cat'], { stdin: 'hé' })
  assert.equal(Buffer.from(JSON.parse(String(server.asked.at(-1)?.body)).stdin, 'base64').toString(), 'hé')
  const script = new ScriptedProcess(server, { waitsForInput: true, stdout: Buffer.from('done') })
  const large = new Uint8Array(600_000).fill(7)
  const { stdout } = await sandbox.exec(['cat'], { stdin: large })
  assert.equal(stdout, 'done')
  assert.equal(script.receivedBytes, 600_000)
})

test('a refusal names the reason', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('POST', /exec$/, () => problem('executable_not_found', '/no/such does not exist.'))
  await assert.rejects(sandbox.exec(['/no/such']), failsWith('executable_not_found'))
  assert.equal(server.countOf('POST', /exec$/), 1)
})

test('output is read from an offset, and taken up again where the connection broke', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const content = Buffer.from('0123456789'.repeat(1_000))
  server.on('GET', /processes\/praaaaaaaaaaaaaaaa$/, () => ({ status: 200, json: wireProcess() }))
  const sinces: number[] = []
  server.on('GET', /output$/, ({ query }, response) => {
    const since = Number(query.get('since'))
    sinces.push(since)
    response.writeHead(200, { 'sandglass-offset': String(since), 'content-length': String(content.byteLength - since) })
    if (sinces.length < 4) response.write(content.subarray(since, since + 1_000), () => setTimeout(() => response.destroy(), 5))
    else response.end(content.subarray(since))
    return 'answered'
  })
  const process = await sandbox.process('praaaaaaaaaaaaaaaa')
  const chunks: Uint8Array[] = []
  for await (const bytes of process.output({ since: 10, follow: true })) chunks.push(bytes)
  assert.ok(Buffer.concat(chunks).equals(content.subarray(10)))
  assert.deepEqual(sinces, [10, 1_010, 2_010, 3_010])
})

test('output that is gone is refused, or a gap for those who ask', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('GET', /processes\/praaaaaaaaaaaaaaaa$/, () => ({ status: 200, json: wireProcess() }))
  server.on('GET', /output$/, ({ query }) =>
    query.get('allow_gap') === '1' ? { status: 200, headers: { 'sandglass-offset': '70' }, body: 'rest' } : problem('output_gone'),
  )
  const process = await sandbox.process('praaaaaaaaaaaaaaaa')
  await assert.rejects(process.output().next(), failsWith('output_gone'))
  const gaps: unknown[] = []
  for await (const bytes of process.output({ onGap: (gap) => gaps.push(gap) })) assert.equal(Buffer.from(bytes).toString(), 'rest')
  assert.deepEqual(gaps, [{ from: 0, to: 70 }])
})

test('a command line where a list of arguments belongs, which only plain JavaScript can write, is refused with the way to say it', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const asked = server.asked.length
  const line: unknown = 'ls -l'
  const says = (error: unknown) => error instanceof SandglassError && error.code === 'invalid_request' && /exec\.shell/.test(error.message)
  // @ts-expect-error text, where a list belongs
  await assert.rejects(sandbox.exec(line), says)
  // @ts-expect-error a list, where a program belongs
  await assert.rejects(sandbox.terminal({ program: ['python3'] }), says)
  assert.equal(server.asked.length, asked)
})
