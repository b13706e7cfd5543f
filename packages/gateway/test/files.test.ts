/** Files in a real guest, through the gateway. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { FileInfoSchema, FileListSchema, ProblemSchema, parserOf } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'
import { readEvents } from './peers/events.ts'

const problem = parserOf(ProblemSchema)
const info = parserOf(FileInfoSchema)
const list = parserOf(FileListSchema)
let bench: Bench
let root: string
before(async () => {
  bench = await Bench.withGuest()
  root = bench.guest?.directory ?? ''
})
after(() => bench[Symbol.asyncDispose]())

const encode = (path: string | Buffer) =>
  [...Buffer.from(path)]
    .map((byte) => (/[A-Za-z0-9/._-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`))
    .join('')
const at = (name: string | Buffer) => encode(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]))
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const codeOf = async (response: Response) => problem.parse(await response.json()).code
const put = (path: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  bench.ask(`/files?path=${path}`, { method: 'PUT', body, headers })

for (const size of [0, 1, 18_431, 18_432, 18_433, 65_535, 65_536, 65_537, 1_048_576, 20_000_000]) {
  test(`FI1, FI3: ${size} random bytes are there when the upload answers, and come back the same`, async () => {
    const bytes = randomBytes(size)
    const name = `size-${size}`
    const response = await put(at(name), bytes)
    assert.equal(response.status, 201)
    assert.equal(sha256(readFileSync(join(root, name))), sha256(bytes))
    const back = await bench.ask(`/files?path=${at(name)}`)
    assert.equal(back.headers.get('content-length'), String(size))
    assert.equal(sha256(Buffer.from(await back.arrayBuffer())), sha256(bytes))
    assert.equal((await put(at(name), bytes)).status, 200)
  })
}

const NAMES: [what: string, name: string | Buffer][] = [
  ['emoji', '🤣'],
  ['NFC', 'é'.normalize('NFC')],
  ['NFD', 'é'.normalize('NFD')],
  ['CJK', '日本語'],
  ['space', 'a b'],
  ['characters of URLs', '#?%&"+='],
  ['a newline', 'a\nb'],
  ['a leading dash', '-rf'],
  ['255 bytes', 'x'.repeat(255)],
  ['an escape that is text', '%41'],
  ['invalid UTF-8', Buffer.from([0x66, 0xff, 0xfe, 0x80])],
]

for (const [what, name] of NAMES) {
  test(`FI2: a name with ${what} goes there and back`, async () => {
    const bytes = randomBytes(100)
    assert.equal((await put(at(name), bytes)).status, 201)
    const names = readdirSync(root, { encoding: 'buffer' })
    assert.ok(names.some((found) => found.equals(Buffer.from(name))))
    const back = Buffer.from(await (await bench.ask(`/files?path=${at(name)}`)).arrayBuffer())
    assert.ok(back.equals(bytes))
    const described = info.parse(await (await bench.ask(`/files/stat?path=${at(name)}`)).json())
    const told = described.name_b64 === undefined ? Buffer.from(described.name) : Buffer.from(described.name_b64, 'base64')
    assert.ok(told.equals(Buffer.from(name)))
    assert.equal((await bench.ask(`/files?path=${at(name)}`, { method: 'DELETE' })).status, 204)
  })
}

test('ranges, ETags and conditions', async () => {
  const created = await put(at('conditional'), Buffer.from('0123456789'), { 'if-none-match': '*' })
  const { etag } = (await created.json()) as { etag: string }
  const path = `/files?path=${at('conditional')}`
  const part = await bench.ask(path, { headers: { range: 'bytes=2-4' } })
  assert.deepEqual([part.status, await part.text(), part.headers.get('content-range')], [206, '234', 'bytes 2-4/10'])
  assert.equal(await codeOf(await bench.ask(path, { headers: { range: 'bytes=20-30' } })), 'range_not_satisfiable')
  assert.equal((await bench.ask(path, { headers: { 'if-none-match': etag } })).status, 304)
  assert.equal(await codeOf(await put(at('conditional'), Buffer.from('x'), { 'if-none-match': '*' })), 'precondition_failed')
  assert.equal(await codeOf(await put(at('conditional'), Buffer.from('x'), { 'if-match': '"other"' })), 'precondition_failed')
  assert.equal((await put(at('conditional'), Buffer.from('new'), { 'if-match': etag })).status, 200)
  const head = await bench.ask(path, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, '3'])
  assert.equal((await bench.ask(`/files?path=${at('missing')}`, { method: 'HEAD' })).status, 404)
})

test('FI4: what is not there is a problem, not a body', async () => {
  const response = await bench.ask(`/files?path=${at('missing')}`)
  assert.equal(response.status, 404)
  assert.equal(await codeOf(response), 'file_not_found')
  assert.equal(await codeOf(await bench.ask(`/files/archive?path=${at('missing')}`)), 'file_not_found')
})

test('FI6: the root, the empty path and their relatives are never removed', async () => {
  for (const path of ['', '/', '//', '.', '/.', '/proc', '/..']) {
    const response = await bench.ask(`/files?path=${path}&recursive=1`, { method: 'DELETE' })
    assert.equal(await codeOf(response), 'path_invalid', path)
  }
})

test('FI8: a client that drops at half leaves neither a file nor a temporary one', async () => {
  mkdirSync(join(root, 'drop'))
  const socket = connect(Number(new URL(bench.url).port), '127.0.0.1')
  socket.write(
    `PUT /v1/sandboxes/${SANDBOX}/files?path=${at('drop/half')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\ncontent-length: 2000000\r\n\r\n`,
  )
  socket.write(Buffer.alloc(1_000_000))
  const deadline = Date.now() + 60_000
  while (readdirSync(join(root, 'drop')).length === 0) {
    assert.ok(Date.now() < deadline, 'the upload did not begin')
    await delay(10)
  }
  socket.destroy()
  while (readdirSync(join(root, 'drop')).length > 0) {
    assert.ok(Date.now() < deadline, `left: ${readdirSync(join(root, 'drop'))}`)
    await delay(10)
  }
})

test('make, list, move, copy, chmod, in pages and as a stream', async () => {
  const post = (action: string, body: unknown) => bench.post(`/files/${action}`, body)
  assert.equal((await post('mkdir', { path: `${root}/tree/deep`, parents: true })).status, 201)
  for (let index = 0; index < 25; index += 1) writeFileSync(join(root, 'tree', `f${String(index).padStart(2, '0')}`), '')
  const first = list.parse(await (await bench.ask(`/files/list?path=${at('tree')}&limit=10`)).json())
  assert.equal(first.items.length, 10)
  const second = list.parse(await (await bench.ask(`/files/list?path=${at('tree')}&limit=10&cursor=${encodeURIComponent(first.next_cursor ?? '')}`)).json())
  assert.equal(second.items[0]?.name, 'f09')
  const lines = (await (await bench.ask(`/files/list?path=${at('tree')}`, { headers: { accept: 'application/x-ndjson' } })).text()).trim().split('\n')
  assert.equal(lines.length, 26)
  for (const line of lines) info.parse(JSON.parse(line))
  assert.equal((await post('copy', { from: `${root}/tree`, to: `${root}/copied` })).status, 200)
  assert.equal(readdirSync(join(root, 'copied')).length, 26)
  assert.equal((await post('move', { from: `${root}/copied/f00`, to: `${root}/moved` })).status, 200)
  assert.equal((await post('chmod', { path: `${root}/moved`, mode: '0600' })).status, 200)
  assert.equal(statSync(join(root, 'moved')).mode & 0o777, 0o600)
  assert.equal(await codeOf(await post('mkdir', { path: `${root}/tree` })), 'file_exists')
  assert.equal((await bench.ask(`/files?path=${at('tree')}`, { method: 'DELETE' })).status, 409)
  assert.equal((await bench.ask(`/files?path=${at('tree')}&recursive=1`, { method: 'DELETE' })).status, 204)
})

test('an archive comes out whole, goes in again, and leads nowhere else', async () => {
  mkdirSync(join(root, 'packed/sub'), { recursive: true })
  writeFileSync(join(root, 'packed/sub/a'), randomBytes(300_000))
  symlinkSync('sub/a', join(root, 'packed/link'))
  const tar = Buffer.from(await (await bench.ask(`/files/archive?path=${at('packed')}`)).arrayBuffer())
  const response = await bench.ask(`/files/archive?path=${at('unpacked')}`, { method: 'PUT', body: tar })
  assert.equal(response.status, 200)
  assert.equal(sha256(readFileSync(join(root, 'unpacked/link'))), sha256(readFileSync(join(root, 'packed/sub/a'))))
  const cut = await bench.ask(`/files/archive?path=${at('cut')}`, { method: 'PUT', body: tar.subarray(0, 100_000) })
  assert.equal(await codeOf(cut), 'archive_invalid')
})

test('changes below a directory are events', async () => {
  mkdirSync(join(root, 'watched'))
  const stop = new AbortController()
  const events = readEvents(await bench.ask(`/files/watch?path=${at('watched')}&recursive=1`, { signal: stop.signal }))
  assert.equal((await events.next()).value?.type, 'ready')
  writeFileSync(join(root, 'watched/new'), '')
  const { value } = await events.next()
  assert.deepEqual([value?.type, value?.data['path']], ['created', join(root, 'watched/new')])
  stop.abort()
  await assert.rejects(events.next())
})

test('a download of a device or a pipe cannot hang', async () => {
  assert.equal(await codeOf(await bench.ask('/files?path=/dev/zero')), 'not_a_regular_file')
  const status = await bench.ask('/files?path=/proc/self/status')
  assert.match(await status.text(), /^Name:/)
})
