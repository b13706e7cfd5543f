/**
 * The host's own record: which epoch it holds and how many terms of its lease it has heard of. The one writer of it.
 *
 * Registering under the same boot with an epoch that is still held resumes that epoch; anything else asks for the next one, after writing
 * down that the old one is given up (register.floor). The expected epoch is one below the floor in both cases.
 */
import { type HostRecord, holdsEpoch, recordAsking, recordRefused, recordRegistered, recordSeq } from '../domain/host-record.ts'
import type { HostRecords } from '../state/host-records.ts'

export class HostLease {
  readonly bootId: string
  readonly #records: HostRecords
  #record: HostRecord

  private constructor(records: HostRecords, record: HostRecord, bootId: string) {
    this.#records = records
    this.#record = record
    this.bootId = bootId
  }

  static async load(records: HostRecords, bootId: string): Promise<HostLease> {
    return new HostLease(records, await records.load(bootId), bootId)
  }

  get record(): HostRecord {
    return this.#record
  }

  /** 0: none; tickets are of none below 1. */
  get heldEpoch(): number {
    return holdsEpoch(this.#record) && this.#record.boot_id === this.bootId ? this.#record.epoch : 0
  }

  /** True when the machine has restarted, or the epoch was lost: nothing of the old epoch may go on. */
  get mustAskAnew(): boolean {
    return recordAsking(this.#record, this.bootId) !== this.#record
  }

  /** @returns the epoch to expect */
  async ask(): Promise<number> {
    await this.#keep(recordAsking(this.#record, this.bootId))
    return Math.max(0, this.#record.floor - 1)
  }

  /** @throws Error when the answer would resume an epoch that was given up */
  async registered(answer: { epoch: number; seq: number }): Promise<void> {
    const next = recordRegistered(this.#record, answer)
    if (next === undefined) throw new Error(`the control plane offers epoch ${answer.epoch}; this host has given up everything below ${this.#record.floor}`)
    await this.#keep(next)
  }

  async heard(seq: number): Promise<void> {
    await this.#keep(recordSeq(this.#record, seq))
  }

  /**
   * A renewal or a registration was refused. What that ends is over at once; the floor is on disk before the next epoch is asked for, also when it
   * cannot be written here.
   * @returns whether the epoch is lost by it, and everything of it is to end
   */
  async refused(told: number | undefined): Promise<boolean> {
    const next = recordRefused(this.#record, told)
    if (next === this.#record) return false
    this.#record = next
    await this.#records.write(next)
    return true
  }

  async #keep(next: HostRecord): Promise<void> {
    if (next === this.#record) return
    await this.#records.write(next)
    this.#record = next
  }
}
