/** Whose certificate the connection of a request has shown. It is looked at once for each connection; its time with each request. */
import type { KeyObject } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import { CodedError, LIMITS } from '@sandglass/contract'
import { checkPeer, type Peer, type Trust } from '@sandglass/identity'
import type { FastifyRequest } from 'fastify'
import { InvariantBroken } from '../domain/invariant.ts'

const known = new WeakMap<TLSSocket, Peer>()

/** @throws PeerRefused */
export function tlsPeer(request: FastifyRequest, { trust, wallMs }: { readonly trust: Trust; readonly wallMs: () => number }): Peer {
  const socket = tlsSocketOf(request)
  const peer = known.get(socket)
  if (peer !== undefined && wallMs() <= peer.notAfterMs + LIMITS.certificateToleranceMs) return peer
  const checked = checkPeer(socket.getPeerX509Certificate(), trust, wallMs())
  known.set(socket, checked)
  return checked
}

/** @throws CodedError `certificate_required` */
export function shownKey(request: FastifyRequest): KeyObject {
  const certificate = tlsSocketOf(request).getPeerX509Certificate()
  if (certificate === undefined) throw new CodedError('certificate_required')
  return certificate.publicKey
}

function tlsSocketOf(request: FastifyRequest): TLSSocket {
  const { socket } = request.raw
  if (!(socket instanceof TLSSocket)) throw new InvariantBroken('a machine asks without TLS')
  return socket
}
