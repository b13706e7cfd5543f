import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { newSandboxId, problemOf } from '@sandglass/contract'
import { CodedError } from '@sandglass/contract/errors'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import { HttpControlClient } from '../src/auth/control-client.ts'

const QUESTION = { key_sha256: '0'.repeat(64), sandbox_id: newSandboxId('00', randomBytes) }
const ANSWER = { tenant_id: 'te1', api_key_id: 'ak1', role: 'member', status: 'ready', status_reason: null, route: null }

const GATEWAY = TEST_AUTHORITY.identity({ role: 'gateway', name: 'test' })

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

type Reply = { readonly status: number; readonly text: string } | 'cut'

type Asked = {
  readonly client: HttpControlClient
  readonly seen: { connections: number; questions: number; names: Set<string | undefined> }
  /** From now on whatever comes over a connection of before is answered by its end. */
  readonly cutKept: () => void
}

/** @returns a client of a control plane that answers in this order, and of that how many connections it has seen and whose */
async function clientOf(...replies: Reply[]): Promise<Asked> {
  const seen = { connections: 0, questions: 0, names: new Set<string | undefined>() }
  const server = createServer(TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }), (request, response) => {
    seen.questions += 1
    seen.names.add(request.socket instanceof TLSSocket ? request.socket.getPeerX509Certificate()?.subjectAltName : undefined)
    const reply = replies.length > 1 ? replies.shift() : replies[0]
    if (reply === undefined || reply === 'cut' || dead.has(request.socket)) return void request.socket.destroy()
    request.resume().once('end', () => response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.text))
  })
  const living = new Set<Socket>()
  const dead = new Set<Socket>()
  server.on('secureConnection', (socket) => {
    seen.connections += 1
    living.add(socket)
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    client: new HttpControlClient([`https://127.0.0.1:${address.port}`], GATEWAY),
    seen,
    cutKept: () => {
      for (const socket of living) dead.add(socket)
    },
  }
}

const good: Reply = { status: 200, text: JSON.stringify(ANSWER) }

test('many questions at once share few connections, and the next one uses one that is kept', async () => {
  const { client, seen } = await clientOf(good)
  const answers = await Promise.all(Array.from({ length: 100 }, () => client.access(QUESTION)))
  assert.equal(answers.length, 100)
  assert.deepEqual(answers[0], ANSWER)
  assert.ok(seen.connections <= 16, `${seen.connections} connections`)
  const before = seen.connections
  await client.access(QUESTION)
  assert.equal(seen.connections, before)
  assert.deepEqual([...seen.names], ['URI:spiffe://sandglass/l1/gateway/test'])
})

test('a question whose connection was cut is asked again, once', async () => {
  const once = await clientOf('cut', good)
  assert.deepEqual(await once.client.access(QUESTION), ANSWER)
  const always = await clientOf('cut')
  await assert.rejects(always.client.access(QUESTION), { code: 'unavailable' })
  assert.equal(always.seen.questions, 2)
})

test('when every kept connection is dead at once, the next question is answered', async () => {
  const { client, cutKept } = await clientOf(good)
  await Promise.all(Array.from({ length: 100 }, () => client.access(QUESTION)))
  cutKept()
  assert.deepEqual(await Promise.all(Array.from({ length: 8 }, () => client.access(QUESTION))), Array(8).fill(ANSWER))
})

test('what the control plane refuses is told as it is; what nobody understands is no answer', async () => {
  for (const code of ['sandbox_not_found', 'unauthenticated'] as const) {
    const problem = problemOf(new CodedError(code))
    const { client } = await clientOf({ status: problem.status, text: JSON.stringify(problem) })
    await assert.rejects(client.access(QUESTION), { code })
  }
  for (const text of ['', 'nonsense', '{}']) {
    const { client } = await clientOf({ status: 502, text })
    await assert.rejects(client.access(QUESTION), { code: 'unavailable' })
  }
})

/** @returns the URL of a server that treats each request so, and what it was asked */
async function replica(answer: (path: string, response: ServerResponse) => void): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = []
  const server = createServer(TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }), (request, response) => {
    seen.push(request.url ?? '')
    request.resume().once('end', () => answer(request.url ?? '', response))
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `https://127.0.0.1:${address.port}`, seen }
}

const answers = (_: string, response: ServerResponse) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ANSWER))
const feeds = (_: string, response: ServerResponse) => void response.writeHead(200).write('{"type":"heartbeat"}\n')

test('a question that one replica does not answer is answered by another, and later ones go there at once', async () => {
  const [silent, other] = [await replica(() => undefined), await replica(answers)]
  const client = new HttpControlClient([silent.url, other.url], GATEWAY)
  const began = performance.now()
  assert.deepEqual(await client.access(QUESTION), ANSWER)
  assert.ok(performance.now() - began < 1_000)
  await client.access(QUESTION)
  assert.equal(silent.seen.length, 1)
  assert.equal(other.seen.length, 2)
})

test('a replica that is gone, and one without its database, are passed over', async () => {
  const gone = await replica((_, response) => void response.destroy())
  const unable = await replica((_, response) => {
    const problem = problemOf(new CodedError('unavailable'), { requestId: 'rq' })
    response.writeHead(problem.status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
  })
  const other = await replica(answers)
  assert.deepEqual(await new HttpControlClient([gone.url, unable.url, other.url], GATEWAY).access(QUESTION), ANSWER)
})

test('a feed that ends is opened again at another replica', async () => {
  const [ends, goesOn] = [await replica((_, response) => void response.writeHead(200).end('{"type":"heartbeat"}\n')), await replica(feeds)]
  const client = new HttpControlClient([ends.url, goesOn.url], GATEWAY)
  const stop = new AbortController()
  const first = client.feed(stop.signal)
  assert.deepEqual(await first.next(), { done: false, value: { type: 'heartbeat' } })
  assert.equal((await first.next()).done, true)
  assert.deepEqual(await client.feed(stop.signal).next(), { done: false, value: { type: 'heartbeat' } })
  assert.equal(goesOn.seen.length, 1)
  stop.abort()
})
