/** The agent's way to the warden of its simulated machine. */
import type { Moment, Warden } from '@sandglass/host-agent/warden/warden'
import { type Machine, presentMachine } from '../host/machine.ts'

const NS_PER_MS = 1_000_000

export class WardenProcess implements Warden {
  readonly alive = true
  readonly #machine: Machine
  readonly #renewalMs: number

  constructor({ renewalMs }: { readonly renewalMs: number }) {
    this.#machine = presentMachine()
    this.#renewalMs = renewalMs
  }

  get frozen(): boolean {
    return this.#machine.warden.frozen
  }

  leftMs(): number {
    return this.#machine.warden.leftMs()
  }

  through(command: readonly [string, ...string[]]): readonly [string, ...string[]] {
    if (this.leftMs() <= 0) throw new Error('the lease of this host has run out')
    return command
  }

  moment(): Promise<Moment | undefined> {
    return this.#machine.step('asks the warden', () => BigInt(Math.floor(this.#machine.warden.nowMs * NS_PER_MS)))
  }

  async renewed(sent: Moment | undefined): Promise<void> {
    if (sent !== undefined) await this.#machine.step('tells the warden', () => this.#machine.warden.renewed(Number(sent) / NS_PER_MS, this.#renewalMs))
  }

  watch(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
  }

  close(): void {}
}
