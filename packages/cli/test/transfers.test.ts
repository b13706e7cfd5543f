/** What long work shows, and files that are watched. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ScriptedSandboxes, wireSandbox } from '../../sdk/test/scripted-sandboxes.ts'
import { problem, ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { progressText } from '../src/progress-line.ts'
import { uploadBytes } from '../src/transfer-size.ts'
import { run, runOnTerminal, start } from './command-line.ts'

const MIB = 1024 * 1024
const folder = mkdtempSync(join(tmpdir(), 'sandglass-transfers-'))
after(() => rmSync(folder, { recursive: true }))

test('a bar where the end is known, else only what came; never wider than the terminal', () => {
  assert.equal(progressText('a', 5 * MIB, 10 * MIB, 1_000, 100), 'a  [############------------]  50 %  5.0 MB of 10 MB  5.0 MB/s  1 s left')
  assert.equal(progressText('a', 12 * MIB, 10 * MIB, 1_000, 100), 'a  [########################] 100 %  10 MB of 10 MB  12 MB/s')
  assert.equal(progressText('a', 5 * MIB, undefined, 2_000, 100), 'a  5.0 MB  2.5 MB/s')
  assert.equal(progressText('a', 0, 0, 0, 100), 'a  0 B')
  for (const cols of [20, 40, 80]) assert.ok(progressText('x'.repeat(200), 1, 2, 500, cols).length < cols)
})

async function scripted(): Promise<ScriptedServer> {
  const server = await ScriptedServer.start()
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server, { name: 'box' }) }))
  return server
}

test('cp of a tree sends about what was counted, and shows a bar on a terminal only', async () => {
  await using server = await scripted()
  const tree = join(folder, 'tree')
  mkdirSync(join(tree, 'deep/er'), { recursive: true })
  writeFileSync(join(tree, 'deep/er/data'), Buffer.alloc(3 * MIB))
  symlinkSync('deep', join(tree, 'link'))
  const info = (name: string, type: string) => ({ name, path: `/${name}`, type, size: 0, mode: '0755', uid: 0, gid: 0, mtime_ms: 0 })
  server.on('GET', /\/files\/stat$/, ({ query }) =>
    query.get('path') === '/srv' ? { status: 200, json: info('srv', 'directory') } : problem('file_not_found'),
  )
  let sent = 0
  server.on('PUT', /\/files\/archive$/, ({ body }) => {
    sent = body.byteLength
    return { status: 200, json: { entries: 4, bytes: body.byteLength } }
  })
  const counted = await uploadBytes(Buffer.from(tree))
  const piped = await run(server, ['cp', tree, 'box:/srv'])
  assert.deepEqual([piped.code, piped.stderr, piped.stdout.toString()], [0, '', ''])
  assert.ok(Math.abs(sent - counted) < 0.01 * sent, `${counted} counted, ${sent} sent`)
  const terminal = await runOnTerminal(server, ['cp', tree, 'box:/srv'])
  assert.equal(terminal.code, 0)
  assert.match(terminal.output, /tree {2}\[[#-]{24}\] +\d+ % {2}\S+ \S+ of 3\.0 MB/)
  assert.match(terminal.output, /\r\u001b\[K$/, 'the line goes when the work is done')
})

test('watch prints changes, one a line, and ends when asked to', async () => {
  await using server = await scripted()
  server.on('GET', /\/files\/watch$/, ({ query }, response) => {
    assert.deepEqual([query.get('path'), query.get('recursive')], ['/srv', '1'])
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = [
      ['ready', {}],
      ['created', { path: '/srv/a\u001b[31m', at_ms: 5 }],
      ['moved', { path: '/srv/a', to: '/srv/b', at_ms: 6 }],
      ['overflow', {}],
    ] as const
    for (const [name, data] of events) response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    return 'answered'
  })
  const human = await run(server, ['watch', 'box:/srv', '-r', '--count', '3'])
  assert.deepEqual([human.code, human.stderr], [0, ''])
  assert.equal(human.stdout.toString(), 'created   /srv/a\\u001b[31m\nmoved     /srv/a -> /srv/b\noverflow\n')
  const json = await run(server, ['watch', 'box:/srv', '-r', '--count', '2', '--json'])
  assert.deepEqual(JSON.parse(json.stdout.toString().split('\n')[1] ?? ''), { type: 'moved', path: '/srv/a', to: '/srv/b', at_ms: 6 })
  const stopped = start(server, ['watch', 'box:/srv', '-r'])
  stopped.child.stdout?.once('data', () => stopped.child.kill('SIGINT'))
  assert.equal((await stopped.finished).code, 0)
  for (const args of [
    ['watch', '/srv'],
    ['watch', 'box:/srv', '--count', '0'],
  ])
    assert.equal((await run(server, args)).code, 125)
})

test('create and rm wait as long as they are told', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  let prefer: string | undefined
  server.on('DELETE', /^\/v1\/sandboxes\/\w+$/, ({ headers, path }) => {
    prefer = String(headers['prefer'])
    sandboxes.deleted.add(path)
    return { status: 204 }
  })
  const created = await run(server, ['create', '--wait', '7'])
  assert.equal(created.code, 0)
  assert.equal(server.asked.find(({ method }) => method === 'POST')?.headers['prefer'], 'wait=7')
  const id = created.stdout.toString().trim()
  assert.equal((await run(server, ['rm', id, '--wait', '7'])).code, 0)
  assert.match(prefer ?? '', /^wait=\d+$/)
  for (const args of [
    ['create', '--wait', '0'],
    ['create', '--wait', '5', '--no-wait'],
    ['rm', id, '--wait', 'x'],
    ['rm', id, '--wait', '5', '--no-wait'],
  ])
    assert.equal((await run(server, args)).code, 125, args.join(' '))
})

test('stop and start: what became of each, with a key of their own, waiting as long as they are told', async () => {
  await using server = await ScriptedServer.start()
  const box = wireSandbox(server, { name: 'box' })
  const stopped = { ...box, status: 'stopped', desired: 'stopped', writable_layer: 'gone' } as const
  const keys = new Set<string>()
  let prefer: string | undefined
  const answering =
    (json: object, status = 200) =>
    (asked: { readonly headers: Readonly<Record<string, unknown>> }) => {
      keys.add(String(asked.headers['idempotency-key']))
      prefer = asked.headers['prefer'] === undefined ? undefined : String(asked.headers['prefer'])
      return { status, json }
    }
  server.on('GET', /^\/v1\/sandboxes\/(box|sbl1a+)$/, () => ({ status: 200, json: box }))
  server.on('GET', /^\/v1\/sandboxes\/none$/, () => problem('sandbox_not_found'))
  server.on('POST', /\/stop$/, answering(stopped))
  server.on('POST', /\/start$/, answering(box))
  const one = await run(server, ['stop', 'box', 'none', '--wait', '7'])
  assert.deepEqual([one.code, one.stdout.toString(), prefer], [125, `${box.id} stopped; what was written in it is gone\n`, 'wait=7'])
  assert.match(one.stderr, /\[sandbox_not_found\]/)
  const json = await run(server, ['stop', 'box', '--json', '--no-wait'])
  assert.deepEqual([JSON.parse(json.stdout.toString()), prefer], [stopped, undefined])
  const start = await run(server, ['start', 'box', 'box'])
  assert.deepEqual([start.code, start.stdout.toString(), prefer], [0, `${box.id} ready\n${box.id} ready\n`, 'wait=120'])
  assert.equal(keys.size, 4)
  for (const args of [['stop'], ['start', 'box', '--wait', '5', '--no-wait'], ['create', '--restart', 'sometimes']]) {
    assert.equal((await run(server, args)).code, 125, args.join(' '))
  }
})

test('events prints changes in their order, and ends when asked to', async () => {
  await using server = await ScriptedServer.start()
  const asked: string[] = []
  server.on('GET', /^\/v1\/events$/, ({ query }, response) => {
    asked.push(query.get('since') ?? '')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: ready\ndata: {"position":4}\n\n')
    const change = { position: 5, type: 'sandbox.ready', sandbox_id: 'sbl1aaaaaaaaaaaaaaaa', generation: 1, reason: null, at: '2026-01-01T00:00:00.000Z' }
    response.write(`id: 5\nevent: change\ndata: ${JSON.stringify(change)}\n\n`)
    return 'answered'
  })
  const human = await run(server, ['events', '--since', '4', '--count', '1'])
  assert.deepEqual([human.code, human.stderr, human.stdout.toString()], [0, '', '5  2026-01-01T00:00:00.000Z  sbl1aaaaaaaaaaaaaaaa  sandbox.ready\n'])
  assert.deepEqual(asked, ['4'])
  const json = await run(server, ['events', '--count', '1', '--json'])
  assert.deepEqual(JSON.parse(json.stdout.toString()).sandbox_id, 'sbl1aaaaaaaaaaaaaaaa')
})
