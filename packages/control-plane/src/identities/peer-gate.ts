/** Who asks on the listener for machines: judged before anything else of a request is looked at, and told to the audit log when refused. */
import { LIMITS, type MachineRole } from '@sandglass/contract'
import { claimText, type Peer, PeerRefused, requirePeer, type Trust } from '@sandglass/identity'
import type { FastifyRequest } from 'fastify'
import type { MachineName } from '../store/identities.ts'
import type { IdentityDesk } from './identity-desk.ts'
import type { RefusalLog } from './refusal-log.ts'
import { tlsPeer } from './tls-peer.ts'

export type Machine = Peer & MachineName

type World = {
  readonly trust: Trust
  readonly desk: IdentityDesk
  readonly refusals: RefusalLog
  readonly wallMs: () => number
  /** Between two looks at the identity behind what stays open, which nothing woke. */
  readonly recheckMs: number
}

export class PeerGate {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** @param name the only one that may ask; undefined: any of the role @throws PeerRefused, noted */
  async enter(request: FastifyRequest, role: MachineRole | undefined, name?: string): Promise<Machine> {
    return await this.noting(request, async () => {
      const peer = tlsPeer(request, this.#world)
      if (role !== undefined) requirePeer(peer, role, name)
      const machine = machineOf(peer)
      await this.#world.desk.requireGood(machine)
      return machine
    })
  }

  /** Work that may find that the peer is not to be let in after all. */
  async noting<T>(request: FastifyRequest, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof PeerRefused) {
        const { reason, claimed } = error
        this.#world.refusals.note({ channel: 'control_plane', reason, claimed, address: request.ip })
      }
      throw error
    }
  }

  /**
   * What stays open ends when the certificate that opened it does, and when its identity is revoked. That is asked at the wake-up of a change, at once, since
   * one may have come while the stream was let in, and now and then, since one may be lost. @returns calls that off
   */
  watchOver(request: FastifyRequest, close: () => void): () => void {
    const { desk, wallMs, recheckMs } = this.#world
    const machine = machineOf(tlsPeer(request, this.#world))
    const leftMs = machine.notAfterMs + LIMITS.certificateToleranceMs - wallMs()
    const timer = setTimeout(close, Math.min(Math.max(0, leftMs), LIMITS.certificateLifeMs + LIMITS.certificateToleranceMs))
    const look = (): void => {
      desk.requireGood(machine).catch((error: unknown) => {
        if (error instanceof PeerRefused) close()
      })
    }
    const off = desk.onChange(machine, look)
    const rechecks = setInterval(look, recheckMs)
    look()
    return () => {
      clearTimeout(timer)
      clearInterval(rechecks)
      off()
    }
  }
}

function machineOf(peer: Peer): Machine {
  if (peer.role === 'control-plane') throw new PeerRefused('wrong_role', claimText(peer))
  return { ...peer, role: peer.role }
}
