/** Joining, renewing, and what hosts and gateways have refused themselves: /internal/v1/join, /certificates, /refusals. */
import { CodedError, type JoinRequest, JoinRequestSchema, PeerRefusalsSchema, parserOf } from '@sandglass/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import { actorOf, joinMachine, renewCertificate } from '../services/machine-certificates.ts'
import type { PeerGate } from './peer-gate.ts'
import { shownKey } from './tls-peer.ts'

const BODY_BYTES = 64 * 1024
const joins = parserOf(JoinRequestSchema)
const refusals = parserOf(PeerRefusalsSchema)

export function identityRoutes(app: FastifyInstance, context: Context, gate: PeerGate): void {
  app.post('/internal/v1/join', { bodyLimit: BODY_BYTES }, async (request, reply) => {
    const body = joins.parse(request.body)
    try {
      return await reply.send(await joinMachine(context, body, request.ip))
    } catch (error) {
      if (error instanceof CodedError && error.status < 500) noteRefusedJoin(context, request, body, error)
      throw error
    }
  })

  const options = {
    bodyLimit: BODY_BYTES,
    onRequest: async (request: FastifyRequest): Promise<void> => {
      await gate.enter(request, undefined)
    },
  }

  app.post('/internal/v1/certificates', options, async (request, reply) => {
    const peer = await gate.enter(request, undefined)
    // It may have been revoked since.
    return await reply.send(await gate.noting(request, () => renewCertificate(context, peer, shownKey(request))))
  })

  app.post('/internal/v1/refusals', options, async (request, reply) => {
    const peer = await gate.enter(request, undefined)
    for (const { reason, claimed, address, count } of refusals.parse(request.body).items) {
      context.refusals.note({ channel: 'data_plane', reason, claimed, address }, count, actorOf(peer))
    }
    return reply.code(204).send()
  })
}

function noteRefusedJoin(context: Context, request: FastifyRequest, { name }: JoinRequest, { code }: CodedError): void {
  context.refusals.note({ channel: 'join', reason: code, claimed: name, address: request.ip })
}
