/** The way to a simulated guest: it dials when its runtime runs and somebody listens, shows its identity, and is judged by the real rule. */

import { basename, dirname } from 'node:path'
import { CodedError, type GuestPreamble } from '@sandglass/contract'
import { type ExpectedGuest, judgePreamble } from '@sandglass/host-agent/domain/judge-preamble'
import { type Machine, presentMachine } from '../host/machine.ts'
import type { Runtime } from '../host/runtime.ts'
import { type Actor, presentActor } from '../kernel/actor.ts'

type ChannelInput = { readonly socket: string; readonly epoch: number; readonly expected: () => ExpectedGuest; readonly onLost: () => void }

export class GuestChannel {
  readonly actor: Actor
  readonly #input: ChannelInput
  readonly #machine: Machine
  readonly #name: string
  readonly #waiters = new Set<(session: GuestSession) => void>()
  #session: GuestSession | undefined
  #closed = false

  private constructor(input: ChannelInput, machine: Machine, name: string) {
    this.#input = input
    this.#machine = machine
    this.#name = name
    this.actor = presentActor()
  }

  static async listen(input: ChannelInput): Promise<GuestChannel> {
    const machine = presentMachine()
    const name = basename(dirname(dirname(input.socket)))
    const channel = new GuestChannel(input, machine, name)
    await machine.step('listens for a guest', () => machine.listen(name, channel))
    return channel
  }

  session(): GuestSession {
    if (this.#session?.open !== true) throw new CodedError('lost_contact', 'The guest agent is not connected.')
    return this.#session
  }

  get connected(): boolean {
    return this.#session?.open === true
  }

  waitForSession(timeoutMs: number, signal?: AbortSignal): Promise<GuestSession> {
    if (this.#session?.open === true) return Promise.resolve(this.#session)
    return new Promise((resolve, reject) => {
      const take = (session: GuestSession): void => {
        stop()
        resolve(session)
      }
      const stop = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        this.#waiters.delete(take)
      }
      const onAbort = (): void => {
        stop()
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        stop()
        reject(new CodedError('lost_contact', `No guest agent has connected within ${timeoutMs} ms.`))
      }, timeoutMs)
      if (signal?.aborted === true) return onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(take)
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#session = undefined
    await this.#machine.step('closes a channel', () => this.#machine.unlisten(this.#name, this))
  }

  /** A guest dials. */
  hear(runtime: Runtime): void {
    if (this.#closed) return
    const preamble: GuestPreamble = {
      protocol: 'sandglass-guest',
      version: 1,
      agent: 'simulated',
      boot_id: runtime.guestBootId,
      session: runtime.guestBootId,
      sandbox: runtime.identity?.sandbox ?? null,
      generation: runtime.identity?.generation ?? null,
      features: [],
    }
    const objection = judgePreamble(preamble, this.#input.expected())
    if (objection !== undefined) {
      this.#machine.world.note(this.#machine.name, `turns away the guest of ${this.#name}: ${objection}`)
      return
    }
    const session = new GuestSession(this.#machine, this.#name, runtime, preamble)
    this.#session = session
    for (const take of [...this.#waiters]) take(session)
  }

  /** Its runtime is gone. */
  lose(): void {
    if (this.#closed || this.#session === undefined) return
    this.#session = undefined
    this.#input.onLost()
  }
}

class GuestSession {
  readonly preamble: GuestPreamble
  readonly #machine: Machine
  readonly #name: string
  readonly #runtime: Runtime

  constructor(machine: Machine, name: string, runtime: Runtime, preamble: GuestPreamble) {
    this.#machine = machine
    this.#name = name
    this.#runtime = runtime
    this.preamble = preamble
  }

  get open(): boolean {
    return this.#machine.runtimes.get(this.#name) === this.#runtime
  }

  async exchange(_method: string, path: string, body?: unknown): Promise<{ status: number; body: Buffer }> {
    const status = await this.#machine.step(`asks a guest ${path}`, () => {
      if (this.#runtime.frozen) throw new CodedError('client_timeout', 'The guest agent did not answer in time.')
      if (!this.open) throw new CodedError('lost_contact', 'The guest agent broke off.')
      return path === '/v1/identity' ? this.#machine.identify(this.#name, this.#runtime, body) : 200
    })
    return { status, body: Buffer.from('{}') }
  }
}
