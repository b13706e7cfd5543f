/**
 * Whether an identity is still good, as SQL says. What was read is believed for `identityCacheMs`, and no longer than until the wake-up of its change; a read
 * that was under way when that came is not kept.
 */
import { LIMITS } from '@sandglass/contract'
import { claimText, type Peer, PeerRefused } from '@sandglass/identity'
import type { WakeBus } from '../events/wake-bus.ts'
import type { Queryable } from '../store/database.ts'
import { type IdentityRow, type MachineName, readIdentity } from '../store/identities.ts'

const MAX_KNOWN = 16_384

export class IdentityDesk {
  readonly #db: Queryable
  readonly #monotonicMs: () => number
  readonly #known = new Map<string, { readonly row: IdentityRow | undefined; readonly untilMs: number }>()
  readonly #bus: WakeBus
  #changes = 0

  constructor(db: Queryable, bus: WakeBus, monotonicMs: () => number) {
    this.#db = db
    this.#monotonicMs = monotonicMs
    this.#bus = bus
    bus.on('identity', (key) => {
      this.#changes += 1
      this.#known.delete(key)
    })
    bus.onGap(() => {
      this.#changes += 1
      this.#known.clear()
    })
  }

  /** @throws PeerRefused `revoked`; CodedError `unavailable` while the database is away */
  async requireGood(peer: Peer & MachineName): Promise<void> {
    const row = await this.#read(peer)
    if (row === undefined) return
    if (row.is_revoked || row.key_fingerprint !== peer.keyFingerprint) throw new PeerRefused('revoked', claimText(peer))
  }

  /** Calls back when what SQL says of it may be another. @returns removes the listener */
  onChange({ role, name }: MachineName, listener: () => void): () => void {
    const key = `${role} ${name}`
    const off = [this.#bus.on('identity', (changed) => changed === key && listener()), this.#bus.onGap(listener)]
    return () => {
      for (const remove of off) remove()
    }
  }

  async #read(peer: MachineName): Promise<IdentityRow | undefined> {
    const key = `${peer.role} ${peer.name}`
    const nowMs = this.#monotonicMs()
    const known = this.#known.get(key)
    if (known !== undefined && nowMs < known.untilMs) return known.row
    const changes = this.#changes
    const row = await readIdentity(this.#db, peer)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    if (changes === this.#changes) this.#known.set(key, { row, untilMs: nowMs + LIMITS.identityCacheMs })
    return row
  }
}
