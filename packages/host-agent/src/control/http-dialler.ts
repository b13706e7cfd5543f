/**
 * Requests to one server over connections that are kept. Node.js' own client, because a start waits for one of these requests and `fetch` takes
 * about half a millisecond more for each. What is sent must be safe to repeat: it is, once, when a kept connection turns out to be gone.
 */
import type { IncomingMessage } from 'node:http'
import { type Agent, request as openRequest } from 'node:https'

export type HttpRequest = {
  readonly headers: Readonly<Record<string, string>>
  /** Sent with POST; absent: GET. */
  readonly body?: string
  /** Also ends an answer that is being read. */
  readonly signal: AbortSignal
}

/** The answer's head; no redirect is followed. @throws Error when there is no answer, the signal's reason when it fires */
export type HttpDialler = (url: URL, request: HttpRequest) => Promise<IncomingMessage>

/** @param agent of the next request */
export function httpDialler(agent: () => Agent): HttpDialler {
  function dial(url: URL, { headers, body, signal }: HttpRequest, mayRepeat: boolean): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = {
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
        signal,
      }
      const request = openRequest(url, { ...options, agent: agent() })
      let answered = false
      request.once('response', (response) => {
        answered = true
        resolve(response)
      })
      request.on('error', (error) => {
        if (signal.aborted) reject(signal.reason)
        // A kept connection that the server had closed by then.
        else if (mayRepeat && !answered && request.reusedSocket) dial(url, { headers, body, signal }, false).then(resolve, reject)
        else reject(error)
      })
      request.end(body)
    })
  }

  return (url, request) => dial(url, request, true)
}
