/**
 * A question in JSON to one server, over connections that are kept. Node.js' own client, because the first command in a sandbox waits for one of these
 * questions and `fetch` takes more than twice the CPU for each.
 */
import type { IncomingMessage } from 'node:http'
import { type Agent, request as openRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { controlPlaneAgent, type OwnIdentity } from '@sandglass/identity'

/**
 * A burst of first commands asks as many questions at once; more connections than this cost more than they bring. One that nobody needs is closed before
 * the control plane closes it (`keepAliveTimeout` of its server).
 */
const AGENT = { keepAlive: true, maxSockets: 16, timeout: 60_000 }

export type JsonAnswer = { readonly status: number; readonly value: unknown }

/**
 * @param over a connection of its own is none that was kept too long
 * @param stop nobody waits for the answer any more
 * @throws Error when there is no answer in JSON within `timeoutMs`
 */
export type JsonQuestion = (body: unknown, timeoutMs: number, over: 'kept' | 'own', stop: AbortSignal) => Promise<JsonAnswer>

export function jsonQuestion(url: URL, identity: OwnIdentity): JsonQuestion {
  const kept = controlPlaneAgent(identity, AGENT)
  const own = controlPlaneAgent(identity, { keepAlive: false })

  function post(body: string, agent: Agent, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const request = openRequest(url, { method: 'POST', agent, signal, headers })
      request.once('response', resolve)
      request.on('error', reject)
      request.end(body)
    })
  }

  return async (body, timeoutMs, over, stop) => {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
    const response = await post(JSON.stringify(body), over === 'kept' ? kept() : own(), signal)
    return { status: response.statusCode ?? 0, value: JSON.parse(await text(response)) }
  }
}
