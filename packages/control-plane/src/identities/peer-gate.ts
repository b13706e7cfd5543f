/** Who asks on the listener for machines: judged before anything else of a request is looked at, and told to the audit log when refused. */
import type { X509Certificate } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import { CodedError, LIMITS, type MachineRole } from '@sandglass/contract'
import { checkPeer, claimText, type Peer, PeerRefused, requirePeer, type Trust } from '@sandglass/identity'
import type { FastifyRequest } from 'fastify'
import { InvariantBroken } from '../domain/invariant.ts'
import type { MachineName } from '../store/identities.ts'
import type { IdentityDesk } from './identity-desk.ts'
import type { RefusalLog } from './refusal-log.ts'

export type Machine = Peer & MachineName

type World = { readonly trust: Trust; readonly desk: IdentityDesk; readonly refusals: RefusalLog; readonly wallMs: () => number }

export class PeerGate {
  readonly #world: World
  /** A certificate is looked at once for each connection; its time and its identity with each request. */
  readonly #peers = new WeakMap<TLSSocket, Peer>()

  constructor(world: World) {
    this.#world = world
  }

  /** @param name the only one that may ask; undefined: any of the role @throws PeerRefused, noted */
  async enter(request: FastifyRequest, role: MachineRole | undefined, name?: string): Promise<Machine> {
    try {
      const peer = this.#peerOf(request)
      const machine = machineOf(peer)
      if (role !== undefined) requirePeer(peer, role, name)
      await this.#world.desk.requireGood(machine)
      return machine
    } catch (error) {
      if (error instanceof PeerRefused) this.refuse(request, error)
      throw error
    }
  }

  refuse(request: FastifyRequest, { reason, claimed }: PeerRefused): void {
    this.#world.refusals.note({ channel: 'control_plane', reason, claimed, address: request.ip })
  }

  #peerOf(request: FastifyRequest): Peer {
    const socket = tlsSocketOf(request)
    const known = this.#peers.get(socket)
    const { trust, wallMs } = this.#world
    if (known !== undefined && wallMs() <= known.notAfterMs + LIMITS.certificateToleranceMs) return known
    const peer = checkPeer(socket.getPeerX509Certificate(), trust, wallMs())
    this.#peers.set(socket, peer)
    return peer
  }
}

function machineOf(peer: Peer): Machine {
  if (peer.role === 'control-plane') throw new PeerRefused('wrong_role', claimText(peer))
  return { ...peer, role: peer.role }
}

export function certificateOf(request: FastifyRequest): X509Certificate {
  const certificate = tlsSocketOf(request).getPeerX509Certificate()
  if (certificate === undefined) throw new CodedError('certificate_required')
  return certificate
}

function tlsSocketOf(request: FastifyRequest): TLSSocket {
  const { socket } = request.raw
  if (!(socket instanceof TLSSocket)) throw new InvariantBroken('a machine asks without TLS')
  return socket
}
