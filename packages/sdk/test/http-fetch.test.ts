/** The SDK's own `fetch` for Node.js: what it promises is what `fetch` promises. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpFetch } from '../src/http-fetch.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function serving(answer: Answer): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no address')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${address.port}/x?y=%ff`, [Symbol.asyncDispose]: close }
}

const init = (rest: RequestInit = {}): RequestInit => ({ redirect: 'error', headers: { 'x-asked': 'yes' }, ...rest })

function streamOfChunks(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks[next]
      next += 1
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
  })
}

test('method, path, headers and a small body arrive, and JSON comes back', async () => {
  await using server = await serving(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const text = JSON.stringify({
      method: request.method,
      url: request.url,
      asked: request.headers['x-asked'],
      length: request.headers['content-length'],
      body,
    })
    response.writeHead(201, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text) }).end(text)
  })
  const response = await httpFetch(server.url, init({ method: 'POST', body: 'grüße' }))
  assert.deepEqual([response.status, await response.json()], [201, { method: 'POST', url: '/x?y=%ff', asked: 'yes', length: '7', body: 'grüße' }])
})

test('bodies flow both ways, byte for byte', async () => {
  await using server = await serving((request, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    request.pipe(response)
  })
  const chunks = Array.from({ length: 64 }, () => randomBytes(100_000))
  const response = await httpFetch(server.url, init({ method: 'PUT', body: streamOfChunks(chunks), duplex: 'half' } as RequestInit))
  const back = createHash('sha256')
  for await (const chunk of response.body ?? []) back.update(chunk)
  assert.equal(back.digest('hex'), createHash('sha256').update(Buffer.concat(chunks)).digest('hex'))
})

test('a body that breaks off is an error, whole or as a stream', async () => {
  for (const type of ['application/json', 'application/octet-stream']) {
    await using server = await serving((_request, response) => {
      response.writeHead(200, { 'content-type': type, 'content-length': '10' })
      response.write('half', () => response.destroy())
    })
    await assert.rejects(async () => (await httpFetch(server.url, init())).text(), type)
  }
})

test('a source that fails breaks the request: the server never sees an end', async () => {
  let ended = false
  const aborted = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  await using server = await serving((request) => {
    request.on('data', () => arrived.resolve())
    request.on('error', () => aborted.resolve())
    request.on('end', () => {
      ended = true
      aborted.resolve()
    })
  })
  const source = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    async pull(controller) {
      await arrived.promise
      controller.error(new Error('the disk is gone'))
    },
  })
  await assert.rejects(
    httpFetch(server.url, init({ method: 'PUT', body: source })),
    ({ cause }: Error) => cause instanceof Error && cause.message === 'the disk is gone',
  )
  await aborted.promise
  assert.equal(ended, false)
})

test('an abort rejects with its reason, before the head and within the body', async () => {
  await using server = await serving((request, response) => {
    if (request.method === 'GET') response.writeHead(200, { 'content-type': 'application/octet-stream' }).write('begun')
  })
  const before = new AbortController()
  const waiting = httpFetch(server.url, init({ method: 'POST', body: '', signal: before.signal }))
  before.abort(new Error('no more time'))
  await assert.rejects(waiting, /no more time/)
  await assert.rejects(httpFetch(server.url, init({ signal: before.signal })), /no more time/)
  const within = new AbortController()
  const response = await httpFetch(server.url, init({ signal: within.signal }))
  within.abort(new Error('enough'))
  await assert.rejects(response.text())
})

test('a redirect is refused, and an answer without a body is one', async () => {
  await using server = await serving((request, response) => {
    if (request.method === 'HEAD') response.writeHead(200, { 'content-length': '5' }).end()
    else if (request.method === 'DELETE') response.writeHead(204).end()
    else response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end()
  })
  await assert.rejects(httpFetch(server.url, init()), /redirect/)
  assert.deepEqual(
    [(await httpFetch(server.url, init({ method: 'DELETE' }))).status, (await httpFetch(server.url, init({ method: 'HEAD' }))).status],
    [204, 200],
  )
})

test('a reader that stops early ends the connection, and a slow one holds the server back', async () => {
  const closed = Promise.withResolvers<number>()
  await using server = await serving((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    let written = 0
    const more = (): void => {
      do written += 65_536
      while (response.write(Buffer.alloc(65_536)))
    }
    response.on('drain', more)
    response.on('close', () => closed.resolve(written))
    more()
  })
  const response = await httpFetch(server.url, init())
  const reader = response.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  assert.ok((await closed.promise) < 64 * 1024 * 1024)
})
