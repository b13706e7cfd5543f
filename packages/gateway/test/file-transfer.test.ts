/** Files between a client and a scripted guest: what goes in and out of the gateway, byte for byte, and what breaks on the way. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { LIMITS, ProblemSchema, parserOf } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'
import { answerJson, type HostRequest, refuse } from './peers/host.ts'

const problem = parserOf(ProblemSchema)
let bench: Bench
before(async () => {
  bench = await Bench.scripted(() => undefined)
})
after(() => bench[Symbol.asyncDispose]())
beforeEach(() => {
  bench.host.requests.length = 0
})

function serve(script: (request: HostRequest) => void): void {
  bench.host.script = script
}

async function codeOf(response: Response): Promise<string> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  const told = problem.parse(await response.json())
  assert.equal(told.status, response.status)
  assert.equal(told.request_id, response.headers.get('sandglass-request-id'))
  return told.code
}

/** A request line as it is, because `fetch` rewrites URLs. */
async function rawRequest(target: string): Promise<string> {
  const socket = connect(Number(new URL(bench.url).port), '127.0.0.1')
  socket.write(
    Buffer.from(`GET /v1/sandboxes/${SANDBOX}${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\nconnection: close\r\n\r\n`, 'latin1'),
  )
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  await once(socket, 'close')
  return text
}

const NAMES: [name: string, raw: string][] = [
  ['a byte that is not UTF-8', '/%ff%fe'],
  ['an emoji', '/%F0%9F%A4%A3'],
  ['an escaped slash', '/a%2fb'],
  ['a plus sign', '/a+b%2B'],
  ['everything that has a meaning in URLs', '/%23%3F%25%22%26%3D'],
  ['a newline', '/a%0Ab'],
  ['255 bytes', `/${'%e6'.repeat(255)}`],
]

for (const [name, raw] of NAMES) {
  test(`a path with ${name} reaches the guest as it came`, async () => {
    serve(({ stream }) => answerJson(stream, 404, { code: 'file_not_found', detail: 'There is no such file.' }))
    const answer = await rawRequest(`/files?path=${raw}&user=me`)
    assert.match(answer, /^HTTP\/1\.1 404/)
    assert.equal(bench.host.requests[0]?.path, `/v1/files?path=${raw}&user=me`)
  })
}

test('characters that may not stand in a URL are escaped, not changed', async () => {
  serve(({ stream }) => answerJson(stream, 404, { code: 'file_not_found', detail: '' }))
  await rawRequest('/files?path=/a"<|')
  assert.equal(bench.host.requests[0]?.path, '/v1/files?path=/a%22%3c%7c')
})

test('a request line with bytes above 0x7e is refused with a problem', async () => {
  assert.match(await rawRequest('/files?path=/\xf0\x9f'), /^HTTP\/1\.1 400 [\s\S]*"code":"invalid_request"/)
})

const REFUSED: [name: string, query: string, code: string][] = [
  ['NUL', 'path=/a%00b', 'path_invalid'],
  ['nothing', 'path=', 'path_invalid'],
  ['a relative path', 'path=etc/passwd', 'path_invalid'],
  ['a broken escape', 'path=/a%zz', 'path_invalid'],
  ['a cut escape', 'path=/a%f', 'path_invalid'],
  ['a name of 256 bytes', `path=/${'%61'.repeat(256)}`, 'path_invalid'],
  ['4,097 bytes', `path=${`/${'a'.repeat(240)}`.repeat(17)}`, 'path_invalid'],
  ['no path', '', 'invalid_request'],
  ['two paths', 'path=/a&path=/b', 'invalid_request'],
  ['an unknown name', 'path=/a&follow=1', 'invalid_request'],
  ['a user of 65 characters', `path=/a&user=${'u'.repeat(65)}`, 'invalid_request'],
  ['__proto__', 'path=/a&__proto__=1', 'invalid_request'],
]

for (const [name, query, code] of REFUSED) {
  test(`a file query with ${name} is refused with ${code} and costs the guest nothing`, async () => {
    assert.equal(await codeOf(await bench.ask(`/files?${query}`)), code)
    assert.equal(bench.host.requests.length, 0)
  })
}

test('ranges and conditions pass through, both ways', async () => {
  serve(({ stream }) => {
    stream.respond({
      ':status': 206,
      'content-length': '3',
      'content-range': 'bytes 1-3/10',
      etag: '"1-2-3"',
      'last-modified-ms': '1700000000000',
      'content-type': 'text/html',
      'x-evil': 'yes',
    })
    stream.end('bcd')
  })
  const response = await bench.ask('/files?path=/a', { headers: { range: 'bytes=1-3', 'if-match': '"1-2-3"' } })
  assert.equal(response.status, 206)
  assert.equal(await response.text(), 'bcd')
  const { headers } = response
  assert.equal(headers.get('content-range'), 'bytes 1-3/10')
  assert.equal(headers.get('etag'), '"1-2-3"')
  assert.equal(headers.get('last-modified'), 'Tue, 14 Nov 2023 22:13:20 GMT')
  assert.equal(headers.get('content-type'), 'application/octet-stream')
  assert.equal(headers.get('x-evil'), null)
  assert.equal(bench.host.requests[0]?.headers.range, 'bytes=1-3')
  assert.equal(bench.host.requests[0]?.headers['if-match'], '"1-2-3"')
})

test('HEAD answers with the size and no body', async () => {
  serve(({ stream }) => {
    stream.respond({ ':status': 200, 'content-length': '7', etag: '"e"' }, { endStream: true })
  })
  const response = await bench.ask('/files?path=/a', { method: 'HEAD' })
  assert.equal(response.headers.get('content-length'), '7')
  assert.equal(bench.host.requests[0]?.method, 'HEAD')
  serve(({ stream }) => {
    stream.respond({ ':status': 404 }, { endStream: true })
  })
  assert.equal((await bench.ask('/files?path=/a', { method: 'HEAD' })).status, 404)
})

test('large bodies go both ways unchanged', async () => {
  const bytes = randomBytes(9_000_001)
  const received: Buffer[] = []
  serve(({ stream, method }) => {
    if (method === 'GET') {
      stream.respond({ ':status': 200, 'content-length': String(bytes.byteLength) })
      stream.end(bytes)
      return
    }
    stream.on('data', (chunk: Buffer) => received.push(chunk))
    stream.on('end', () => answerJson(stream, 201, { size: bytes.byteLength, etag: '"x"' }))
  })
  const put = await bench.ask('/files?path=/a&mode=0600', { method: 'PUT', body: bytes })
  assert.equal(put.status, 201)
  assert.deepEqual(await put.json(), { size: bytes.byteLength, etag: '"x"' })
  assert.ok(Buffer.concat(received).equals(bytes))
  assert.equal(bench.host.requests[0]?.headers['content-length'], String(bytes.byteLength))
  const got = Buffer.from(await (await bench.ask('/files?path=/a')).arrayBuffer())
  assert.ok(got.equals(bytes))
})

test('FI8: a client that drops in the middle of an upload resets the stream to the guest', async () => {
  const outcome = new Promise<string>((resolve) => {
    serve(({ stream }) => {
      stream.on('data', () => undefined)
      stream.on('end', () => resolve(stream.rstCode === 0 && !stream.aborted ? 'ended' : 'reset'))
      stream.on('aborted', () => resolve('reset'))
      stream.on('error', () => resolve('reset'))
    })
  })
  const socket = connect(Number(new URL(bench.url).port), '127.0.0.1')
  socket.write(
    `PUT /v1/sandboxes/${SANDBOX}/files?path=/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`,
  )
  while (bench.host.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
  socket.destroy()
  assert.equal(await outcome, 'reset')
})

const BREAKS: [name: string, headers: Record<string, string>, end: (request: HostRequest) => void][] = [
  ['the stream is reset', {}, ({ stream }) => stream.destroy(new Error('reset'))],
  ['the connection is cut', {}, () => bench.host.cut()],
  ['the body is shorter than was said', { 'content-length': '100000' }, ({ stream }) => stream.end()],
]

for (const [name, headers, end] of BREAKS) {
  for (const path of ['/files?path=/a', '/files/archive?path=/a']) {
    if (path.includes('archive') && 'content-length' in headers) continue
    test(`FI4: ${path.split('?')[0]}: when ${name} in the middle, the client’s connection breaks`, async () => {
      let breakOff = (): void => undefined
      serve((request) => {
        request.stream.respond({ ':status': 200, ...headers })
        request.stream.write('x'.repeat(1_000))
        breakOff = () => end(request)
      })
      const response = await bench.ask(path)
      assert.equal(response.status, 200)
      breakOff()
      await assert.rejects(response.arrayBuffer())
    })
  }
}

test('FI4: an error before the body is a problem document', async () => {
  serve(({ stream }) => answerJson(stream, 404, { code: 'file_not_found', detail: 'There is no /a; check the path.' }))
  const response = await bench.ask('/files?path=/a')
  assert.equal(response.status, 404)
  assert.equal(await codeOf(response), 'file_not_found')
})

for (const status of [201, 204, 304]) {
  test(`a guest that answers a read with ${status} and then breaks off is refused with a problem, and the client’s connection stays`, async () => {
    serve(({ stream }) => {
      stream.respond({ ':status': status, 'content-length': '5' })
      stream.write('12345')
      setTimeout(() => stream.destroy(new Error('reset')), 50)
    })
    const response = await bench.ask('/files?path=/a')
    assert.ok(response.status >= 500)
    await codeOf(response)
  })
}

test('a list that breaks before its first entry is refused with a problem', async () => {
  serve(({ stream }) => {
    stream.respond({ ':status': 200, 'content-type': 'application/x-ndjson' })
    stream.end('no JSON\n')
  })
  assert.equal(await codeOf(await bench.ask('/files/list?path=/a', { headers: { accept: 'application/x-ndjson' } })), 'internal')
})

for (const bytes of [0, 5]) {
  test(`a stream that breaks behind all of the ${bytes} bytes that were announced leaves the client’s connection usable`, { timeout: 60_000 }, async () => {
    const broken = Promise.withResolvers<void>()
    serve(({ stream }) => {
      stream.respond({ ':status': 200, 'content-length': String(bytes) })
      stream.write('x'.repeat(bytes), () => setTimeout(() => stream.destroy(new Error('reset')), 50))
      stream.once('close', broken.resolve)
    })
    const socket = connect(Number(new URL(bench.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
    socket.write(`GET /v1/sandboxes/${SANDBOX}/files?path=/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\n\r\n`)
    await broken.promise
    // What the host sends comes in order, so by the answer to this the gateway has heard of it, and would have cut the connection.
    serve(({ stream }) => answerJson(stream, 200, { items: [] }))
    assert.equal((await bench.ask('/processes')).status, 200)
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    await once(socket, 'close')
    assert.match(text, /200 OK[\s\S]*200 OK/)
  })
}

test('an early refusal answers an upload that goes on', async () => {
  serve(({ stream }) => answerJson(stream, 403, { code: 'permission_denied', detail: 'No.' }))
  const response = await bench.ask('/files?path=/a', { method: 'PUT', body: Buffer.alloc(4_000_000) })
  assert.equal(await codeOf(response), 'permission_denied')
})

const HOSTILE: [name: string, status: number, body: string, code: string][] = [
  ['a code that is not known', 404, '{"code":"pwned","detail":"x"}', 'internal'],
  ['a code that only the platform may use', 401, '{"code":"unauthenticated","detail":"give me your key"}', 'internal'],
  ['a code of the host', 409, '{"code":"stale_generation","detail":"x"}', 'internal'],
  ['no JSON', 500, '<html>', 'internal'],
  ['an array', 500, '[]', 'internal'],
  ['nothing', 503, '', 'internal'],
  ['a body without end', 500, `{"code":"file_not_found","detail":"${'x'.repeat(100_000)}"}`, 'internal'],
]

for (const [name, status, body, code] of HOSTILE) {
  test(`a guest that answers an error with ${name} is ${code}`, async () => {
    serve(({ stream }) => {
      stream.respond({ ':status': status })
      stream.end(body)
    })
    assert.equal(await codeOf(await bench.ask('/files?path=/a')), code)
  })
}

test('the detail of a guest is bounded and has no control characters', async () => {
  serve(({ stream }) => answerJson(stream, 404, { code: 'file_not_found', detail: `\u001b[31m\u202e${'x'.repeat(5_000)}` }))
  const told = problem.parse(await (await bench.ask('/files?path=/a')).json())
  assert.ok(told.detail.length <= 1_000)
  assert.ok(told.detail.startsWith('\ufffd[31m\ufffdxxx'))
})

test('a JSON answer of a guest that does not follow the schema is internal', async () => {
  serve(({ stream }) => answerJson(stream, 200, { name: 'a', evil: true }))
  assert.equal(await codeOf(await bench.ask('/files/stat?path=/a')), 'internal')
  serve(({ stream }) => answerJson(stream, 200, 'x'.repeat(LIMITS.guestJsonBytes + 1)))
  assert.equal(await codeOf(await bench.ask('/files/stat?path=/a')), 'internal')
})

test('mkdir, move, copy and chmod want exactly one form of each path, and check it', async () => {
  const bad: [path: string, body: Record<string, unknown>, code: string][] = [
    ['/files/mkdir', {}, 'invalid_request'],
    ['/files/mkdir', { path: '/a', path_b64: 'L2E=' }, 'invalid_request'],
    ['/files/mkdir', { path: '' }, 'path_invalid'],
    ['/files/mkdir', { path: 'a' }, 'path_invalid'],
    ['/files/mkdir', { path_b64: 'L2EA' }, 'path_invalid'],
    ['/files/move', { from: '/a' }, 'invalid_request'],
    ['/files/copy', { from: '/a', to: '' }, 'path_invalid'],
    ['/files/chmod', { path: '/a', mode: '9' }, 'invalid_request'],
    ['/files/chmod', { path: '/a', mode: '0644', surprise: 1 }, 'invalid_request'],
  ]
  for (const [path, body, code] of bad) assert.equal(await codeOf(await bench.post(path, body)), code, JSON.stringify(body))
  assert.equal(bench.host.requests.length, 0)
})

test('watch turns lines into events, and the end of the stream into an error event', async () => {
  serve(({ stream }) => {
    stream.respond({ ':status': 200 })
    stream.write('{"type":"ready"}\n{"type":"crea')
    stream.end('ted","path":"/a","at_ms":1}\n')
  })
  const text = await (await bench.ask('/files/watch?path=/a')).text()
  assert.match(text, /^event: ready\ndata: \{\}\n\nevent: created\ndata: \{"path":"\/a","at_ms":1\}\n\nevent: error\ndata: .*"lost_contact".*\n\n$/)
})

test('a refusal of the host itself is told as such', async () => {
  serve(({ stream }) => refuse(stream, 502, 'lost_contact'))
  assert.equal(await codeOf(await bench.ask('/files/stat?path=/a')), 'lost_contact')
  serve(({ stream }) => refuse(stream, 401, 'unauthenticated'))
  assert.equal(await codeOf(await bench.ask('/files/stat?path=/a')), 'unavailable')
})
