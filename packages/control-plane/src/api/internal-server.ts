/**
 * The listener for hosts and gateways: TLS with certificates of this installation's CA on both sides. Everything on it but joining asks for a certificate
 * (identities/peer-gate.ts); the public listener serves nothing of it.
 */
import { createServer, type Server } from 'node:https'
import { LIMITS } from '@sandglass/contract'
import { type KeyAndCertificate, serverOptions } from '@sandglass/identity'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import type { World } from '../world.ts'
import { makeServer } from './server.ts'

export type InternalServer = {
  readonly app: FastifyInstance
  /** Shown to connections that come from now on. */
  show(own: KeyAndCertificate): void
}

export function makeInternalServer(config: Config, world: World, own: KeyAndCertificate): InternalServer {
  let server: Server | undefined
  const app = makeServer(config, world, (handler) => {
    server = createServer({ ...serverOptions(own), maxHeaderSize: LIMITS.requestHeadBytes }, handler)
    return server
  })
  return { app, show: (next) => server?.setSecureContext(serverOptions(next)) }
}
