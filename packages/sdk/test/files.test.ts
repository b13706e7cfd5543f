import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Sandbox, Sandglass, SandglassError } from '../src/index.ts'
import { hurriedWorld } from './hurried-world.ts'
import { ScriptedSandboxes } from './scripted-sandboxes.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

async function sandboxOn(server: ScriptedServer): Promise<Sandbox> {
  new ScriptedSandboxes(server)
  return Sandbox.create({ client: new Sandglass({ url: server.url, apiKey: `sgk_${'a'.repeat(43)}`, world: hurriedWorld() }) })
}

const written = { status: 201, json: { size: 3, etag: '"1"' } }
const info = { name: 'x', path: '/x', type: 'file', size: 3, mode: '0644', uid: 0, gid: 0, mtime_ms: 1_000 }

test('every byte of a name survives the query (FI2)', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('PUT', /files$/, () => written)
  const names = ['/a b', '/#?%&"\'+=', '/\n', '/-x', '/é', '/e\u0301', '/日本語🤣', Uint8Array.from([0x2f, 0xff, 0xfe, 0x41])]
  for (const name of names) {
    await sandbox.files.write(name, 'abc')
    const { rawQuery } = server.asked.at(-1) ?? assert.fail('nothing was asked')
    const decoded = Buffer.from(
      rawQuery.replace(/^path=/, '').replaceAll(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    )
    assert.deepEqual(decoded, Buffer.from(name), JSON.stringify(name))
    assert.doesNotMatch(rawQuery, /[^\x21-\x7e]/)
  }
})

test('all kinds of sources arrive whole, with their length where it is known, and report progress', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('PUT', /files$/, () => written)
  const content = Buffer.from('0123456789'.repeat(100_000))
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-sdk-'))
  await writeFile(join(directory, 'x'), content)
  const handle = await open(join(directory, 'x'))
  try {
    const sources = {
      bytes: content,
      text: content.toString(),
      blob: new Blob([content]),
      handle,
      stream: new Blob([content]).stream(),
      iterable: (async function* () {
        yield content.subarray(0, 10)
        yield content.subarray(10)
      })(),
    }
    for (const [kind, source] of Object.entries(sources)) {
      const progress: number[] = []
      await sandbox.files.write('/x', source, { onProgress: (bytes) => progress.push(bytes), mode: 0o600, parents: true })
      const asked = server.asked.at(-1) ?? assert.fail('nothing was asked')
      assert.ok(asked.body.equals(content), kind)
      assert.equal(progress.at(-1), content.byteLength, kind)
      const known = kind !== 'stream' && kind !== 'iterable'
      assert.equal(asked.headers['content-length'], known ? String(content.byteLength) : undefined, kind)
      assert.equal(asked.rawQuery, 'path=/x&mode=0600&parents=1')
    }
  } finally {
    await handle.close()
    await rm(directory, { recursive: true })
  }
})

test('a write of bytes is repeated after a lost answer, a stream and a conditional write are not', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  let drops = 1
  server.on('PUT', /files$/, () => (drops-- > 0 ? 'drop' : written))
  await sandbox.files.write('/x', 'abc')
  assert.equal(server.countOf('PUT', /files$/), 2)
  drops = 1
  await assert.rejects(sandbox.files.write('/x', 'abc', { ifNoneMatch: '*' }), failsWith('unavailable'))
  drops = 1
  await assert.rejects(sandbox.files.write('/x', new Blob(['abc'])), failsWith('unavailable'))
  assert.equal(server.countOf('PUT', /files$/), 4)
})

test('a source that fails fails the write with its own error', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('PUT', /files$/, () => written)
  const source = (async function* () {
    yield Buffer.from('abc')
    throw new Error('disk on fire')
  })()
  await assert.rejects(sandbox.files.write('/x', source), { name: 'Error', message: 'disk on fire' })
})

test('a tree with what cannot be copied fails with its name, not as a lost network', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('PUT', /files\/archive$/, () => ({ status: 200, json: { entries: 1, bytes: 0 } }))
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-sdk-'))
  const pipe = createServer()
  try {
    pipe.listen(join(directory, 'socket'))
    await once(pipe, 'listening')
    await assert.rejects(sandbox.files.upload(directory, '/x'), (error: unknown) => {
      assert.ok(error instanceof SandglassError)
      assert.equal(error.code, 'not_a_regular_file')
      assert.match(error.message, /\/socket is neither/)
      return true
    })
  } finally {
    pipe.close()
    await rm(directory, { recursive: true, force: true })
  }
})

test('a download that is cut off fails, and a problem is never taken for content (FI4)', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('GET', /files$/, (_, response) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('abc', () => response.destroy())
    return 'answered'
  })
  await assert.rejects(sandbox.files.read('/x'), failsWith('lost_contact'))
  server.on('GET', /files$/, () => problem('file_not_found', 'There is no /x.'))
  await assert.rejects(sandbox.files.read('/x'), failsWith('file_not_found'))
  assert.equal(await sandbox.files.exists('/x').catch(() => 'error'), 'error')
  server.on('GET', /files\/stat$/, () => problem('file_not_found'))
  assert.equal(await sandbox.files.exists('/x'), false)
})

test('ranges and conditions go into headers', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('GET', /files$/, () => ({ status: 206, body: 'bc', headers: { etag: '"9"' } }))
  assert.equal(await sandbox.files.readText('/x', { range: { start: 1, end: 2 }, ifMatch: '"9"', user: 'me' }), 'bc')
  const asked = server.asked.at(-1)
  assert.equal(asked?.headers['range'], 'bytes=1-2')
  assert.equal(asked?.headers['if-match'], '"9"')
  assert.equal(asked?.query.get('user'), 'me')
})

test('names that are not UTF-8 come as bytes in listings, and go as bytes in bodies', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.on('GET', /list$/, ({ query }) => {
    const second = query.get('cursor') === 'next'
    const item = second ? { ...info, name: '\uFFFD', name_b64: '/w==' } : info
    return { status: 200, json: { items: [item], next_cursor: second ? null : 'next' } }
  })
  const names: Uint8Array[] = []
  for await (const item of sandbox.files.list('/')) names.push(item.nameBytes)
  assert.deepEqual(
    names.map((name) => [...name]),
    [[0x78], [0xff]],
  )
  server.on('POST', /move$/, () => ({ status: 200, json: info }))
  await sandbox.files.move(Uint8Array.from([0x2f, 0xff]), '/y')
  assert.deepEqual(JSON.parse(String(server.asked.at(-1)?.body)), { from_b64: 'L/8=', to: '/y' })
})

test('watching goes on after a lost connection and says that something may have been missed', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  let connections = 0
  server.on('GET', /watch$/, (_, response) => {
    connections += 1
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      `event: ready\ndata: {}\n\n:ignored\nevent: created\r\ndata: {"path":"/d/${connections}",\r\ndata: "at_ms":5}\r\n\r\nevent: heartbeat\ndata: {}\n\n`,
    )
    if (connections === 1) setImmediate(() => response.destroy())
    return 'answered'
  })
  const seen: string[] = []
  for await (const event of sandbox.files.watch('/d', { recursive: true })) {
    seen.push(`${event.type} ${event.path}`)
    if (seen.length === 3) break
  }
  assert.deepEqual(seen, ['created /d/1', 'overflow undefined', 'created /d/2'])
  server.on('GET', /watch$/, () => ({
    status: 200,
    body: `event: error\ndata: ${JSON.stringify(problem('limit_exceeded', 'Too many watchers.').json)}\n\n`,
  }))
  await assert.rejects(sandbox.files.watch('/d').next(), failsWith('limit_exceeded'))
})
