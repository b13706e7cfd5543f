/** Kept connections: one for many requests, and one that the server has closed meanwhile is no failure. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import { httpDialler } from '../src/control/http-dialler.ts'

const keeping = () => {
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  return () => agent
}

const POST = { headers: { 'content-type': 'text/plain' }, body: 'ping', signal: AbortSignal.timeout(60_000) }

async function withServer(run: (url: URL, server: Server, connections: Set<Socket>) => Promise<void>): Promise<void> {
  const server = createServer(
    TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }),
    async (request, response) => void response.end(`${request.method} ${await text(request)}`),
  ).listen(0, '127.0.0.1')
  const connections = new Set<Socket>()
  server.on('secureConnection', (socket) => connections.add(socket))
  try {
    await once(server, 'listening')
    const address: AddressInfo | string | null = server.address()
    assert.ok(address !== null && typeof address === 'object')
    await run(new URL(`https://127.0.0.1:${address.port}/`), server, connections)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('requests follow one another over one connection', () =>
  withServer(async (url, _, connections) => {
    const dial = httpDialler(keeping())
    for (let count = 0; count < 3; count += 1) assert.equal(await text(await dial(url, POST)), 'POST ping')
    assert.equal(await text(await dial(url, { headers: {}, signal: POST.signal })), 'GET ')
    assert.equal(connections.size, 1)
  }))

test('a request over a connection that the server ends instead of answering is sent again, once', () =>
  withServer(async (url, server, connections) => {
    const dial = httpDialler(keeping())
    await text(await dial(url, POST))
    const [kept] = connections
    assert.ok(kept !== undefined)
    // The next request is on its way when the connection ends.
    kept.prependListener('data', () => kept.destroy())
    assert.equal(await text(await dial(url, POST)), 'POST ping')
    assert.equal(connections.size, 2)
    server.on('connection', (socket) => socket.destroy())
    server.closeAllConnections()
    await assert.rejects(dial(url, POST))
  }))

test('a signal ends the wait for an answer with its reason', () =>
  withServer(async (url, server) => {
    server.removeAllListeners('request')
    const controller = new AbortController()
    const waiting = httpDialler(keeping())(url, { ...POST, signal: controller.signal })
    await once(server, 'secureConnection')
    const reason = new Error('no longer')
    controller.abort(reason)
    await assert.rejects(waiting, reason)
  }))
