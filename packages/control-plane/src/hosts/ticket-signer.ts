/**
 * Signs start tickets, end orders and pool orders. Any control plane of the installation may: everything in them, the term included, comes from the one
 * SELECT that found the order due (guard: mint.read), so a signer that was paused in between signs something old, not something fresh.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import {
  type EndOrder,
  type PoolOrder,
  type RegisteredHost,
  type RuntimeSpec,
  type Signed,
  type StartTicket,
  sha256Hex,
  signPayload,
} from '@sandglass/contract'

const KEY_ID_CHARACTERS = 16

export class TicketSigner {
  readonly #key: { id: string; privateKey: KeyObject }
  /** As hosts are told at registration. */
  readonly publicKeys: RegisteredHost['ticket_keys']

  constructor(privateKey: KeyObject) {
    const publicKeyPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
    const id = sha256Hex(publicKeyPem).slice(0, KEY_ID_CHARACTERS)
    this.#key = { id, privateKey }
    this.publicKeys = [{ id, public_key_pem: publicKeyPem }]
  }

  start(ticket: Omit<StartTicket, 'kind' | 'spec_sha256'>, spec: RuntimeSpec): { ticket: Signed; spec: string } {
    const text = JSON.stringify(spec)
    return { ticket: signPayload({ kind: 'start', ...ticket, spec_sha256: sha256Hex(text) }, this.#key), spec: text }
  }

  end(order: Omit<EndOrder, 'kind'>): Signed {
    return signPayload({ kind: 'end', ...order }, this.#key)
  }

  pool(order: Omit<PoolOrder, 'kind'>): Signed {
    return signPayload({ kind: 'pool', ...order }, this.#key)
  }
}
