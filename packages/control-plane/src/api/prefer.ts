/** `Prefer: wait=N` (RFC 7240): seconds to hold the answer, bounded. A preference that cannot be read is ignored, as the RFC says. */
import { LIMITS } from '@sandglass/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** @returns milliseconds; undefined when no wait is asked for */
export function preferredWaitMs(request: FastifyRequest, reply: FastifyReply): number | undefined {
  const header = request.headers['prefer']
  const text = Array.isArray(header) ? header.join(',') : (header ?? '')
  const match = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?(?:$|[,;\s])/i.exec(text)
  if (match === null) return undefined
  const seconds = Math.min(Number(match[1]), LIMITS.preferWaitSeconds)
  void reply.header('preference-applied', `wait=${seconds}`)
  return seconds * 1_000
}

/** For who is about to wait: its place goes to another request, and the signal is aborted when the client goes away. */
export function waitSignal(reply: FastifyReply): AbortSignal {
  reply.request.place?.leave()
  return goneSignal(reply)
}

/** Aborted when the client goes away: nobody waits on for it. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}
