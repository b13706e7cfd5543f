/** A host among several replicas of its control plane: one that refuses, one that is silent, one that ends its watch. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, test } from 'node:test'
import { problemOf, Replicas } from '@sandglass/contract'
import { CodedError } from '@sandglass/contract/errors'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import { controlClient } from '../src/control/control-client.ts'
import { until } from './support/until.ts'

const BODY = { epoch: 1, boot_id: 'boot' }
const never = new AbortController().signal

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

type Reply = 'silent' | { readonly status: number; readonly body: unknown } | ((response: ServerResponse) => void)

class Replica {
  readonly seen: string[] = []
  readonly watches: ServerResponse[] = []
  url = ''
  reply: Reply

  private constructor(reply: Reply) {
    this.reply = reply
  }

  static async start(reply: Reply): Promise<Replica> {
    const replica = new Replica(reply)
    const server = createServer(TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }), (request, response) => replica.#answer(request, response))
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address: AddressInfo | string | null = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    replica.url = `https://127.0.0.1:${address.port}`
    return replica
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.seen.push(request.url ?? '')
    request.resume()
    const { reply } = this
    if (request.url?.includes('/watch') === true && reply !== 'silent') {
      this.watches.push(response)
      response.writeHead(200).write('{"type":"heartbeat"}\n')
    } else if (typeof reply === 'function') reply(response)
    else if (reply !== 'silent') response.writeHead(reply.status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body))
  }
}

const renewedTo = (seq: number): Reply => ({ status: 200, body: { epoch: 1, seq } })
const problem = (error: CodedError): Reply => {
  const body = problemOf(error, { requestId: 'rq' })
  return { status: body.status, body }
}
const clientOf = (...replicas: readonly [Replica, ...Replica[]]) => {
  const [first, ...rest] = replicas.map((replica) => replica.url)
  assert.ok(first !== undefined)
  return controlClient(new Replicas([first, ...rest]), TEST_AUTHORITY.identity({ role: 'host', name: `ho${'a'.repeat(16)}` }))
}

test('a renewal that one replica does not answer is answered by another within a second', async () => {
  const [silent, other] = [await Replica.start('silent'), await Replica.start(renewedTo(7))]
  const client = clientOf(silent, other)
  const began = performance.now()
  assert.equal((await client.renew('h', BODY, never)).seq, 7)
  const tookMs = performance.now() - began
  assert.ok(tookMs < 1_000, `it took ${tookMs} ms`)
  assert.equal((await client.renew('h', BODY, never)).seq, 7)
  assert.equal(silent.seen.length, 1, 'the one that was silent is not asked again')
})

test('a renewal that one replica cannot serve is served by another', async () => {
  const [broken, other] = [await Replica.start(problem(new CodedError('unavailable'))), await Replica.start(renewedTo(3))]
  assert.equal((await clientOf(broken, other).renew('h', BODY, never)).seq, 3)
})

test('an epoch that is lost is lost, whoever says so', async () => {
  const [says, other] = [await Replica.start(problem(new CodedError('stale_epoch'))), await Replica.start(renewedTo(3))]
  await assert.rejects(clientOf(says, other).renew('h', BODY, never), { code: 'stale_epoch' })
  assert.equal(other.seen.length, 0)
})

test('with every replica away it says so', async () => {
  const [one, other] = [await Replica.start(problem(new CodedError('unavailable'))), await Replica.start((response) => response.destroy())]
  await assert.rejects(clientOf(one, other).renew('h', BODY, never), { code: 'unavailable' })
})

test('the watch leaves a replica that answers nothing else any more', async () => {
  const [first, other] = [await Replica.start(renewedTo(1)), await Replica.start(renewedTo(2))]
  const client = clientOf(first, other)
  const watch = client.watch('h', 1, never)
  assert.deepEqual((await watch.next()).value, { type: 'heartbeat' })
  first.reply = 'silent'
  const ended = watch.next()
  await client.renew('h', BODY, never)
  await assert.rejects(ended)
  const again = client.watch('h', 1, never)
  assert.deepEqual((await again.next()).value, { type: 'heartbeat' })
  assert.equal(other.watches.length, 1)
  await again.return(undefined)
})

test('a watch that a replica ends is opened again at another', async () => {
  const [first, other] = [await Replica.start(renewedTo(1)), await Replica.start(renewedTo(2))]
  const client = clientOf(first, other)
  const watch = client.watch('h', 1, never)
  await watch.next()
  first.watches[0]?.end()
  assert.equal((await watch.next()).done, true)
  const again = client.watch('h', 1, never)
  await again.next()
  await until('the other to be asked', () => other.watches[0])
  await again.return(undefined)
})
