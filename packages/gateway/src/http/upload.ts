/**
 * A client's body on its way into a sandbox.
 *
 * Back-pressure goes from the sandbox to the client's socket. A client that drops is an error, so the stream inward is reset and the guest
 * removes what it had. When the sandbox answers early, the rest is read and dropped for a while, because many clients read an answer only
 * when they have sent everything.
 */
import type { IncomingMessage } from 'node:http'
import { LIMITS } from '@sandglass/contract'
import type { BodyPump } from '../hosts/guest-client.ts'
import { ClientGone } from './client-stream.ts'

const DISCARD_BYTES = 64 * 1024 * 1024

/** Reads and drops what is left of a body that nobody wants, up to a bound; then the connection is cut. */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed || request.listenerCount('data') > 0) return
  let discarded = 0
  request.socket.setTimeout(LIMITS.uploadIdleMs)
  request.once('end', () => request.socket.setTimeout(0))
  request.on('data', (chunk: Uint8Array) => {
    discarded += chunk.byteLength
    if (discarded > DISCARD_BYTES) request.socket.destroy()
  })
  request.resume()
}

/** @param idleMs a client that sends nothing for so long is taken for gone; undefined where a person may type as slowly as they like */
export function uploadFrom(request: IncomingMessage, idleMs?: number): BodyPump {
  return (sink) =>
    new Promise((resolve, reject) => {
      let isWanted = true
      let discarded = 0
      const stop = () => {
        isWanted = false
        request.resume()
        resolve()
      }
      if (request.destroyed && !request.complete) return reject(new ClientGone())
      if (idleMs !== undefined) request.socket.setTimeout(idleMs)
      sink.once('response', stop)
      sink.once('close', stop)
      sink.on('drain', () => request.resume())
      request.on('data', (chunk: Uint8Array) => {
        if (isWanted) {
          if (!sink.write(chunk)) request.pause()
          return
        }
        discarded += chunk.byteLength
        if (discarded > DISCARD_BYTES) request.socket.destroy()
      })
      request.once('end', () => {
        request.socket.setTimeout(0)
        if (isWanted) sink.end()
        resolve()
      })
      request.once('error', reject)
      request.once('close', () => {
        if (!request.complete) reject(new ClientGone())
      })
    })
}
