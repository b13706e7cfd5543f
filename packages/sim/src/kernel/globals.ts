/**
 * Time of the simulation in the place of Node.js' own. Code that runs in a process of the simulation (actor.ts) gets timers and clocks of its machine, in
 * the order that the seed gives; all other code of this thread keeps the real ones. Installed once per thread, before any code of a role is loaded.
 */
import { type Actor, present } from './actor.ts'
import type { Clockwork } from './clockwork.ts'
import type { Scheduled, World } from './world.ts'

const RealDate = Date
const realNow = performance.now.bind(performance)
const realSetImmediate = setImmediate
const realSetTimeout = setTimeout
const realSetInterval = setInterval
const realClearTimeout = clearTimeout

export const real = {
  nowMs: realNow,
  /** Resolves when every promise and every `nextTick` has come to rest. */
  rest: (): Promise<void> => new Promise((resolve) => void realSetImmediate(resolve)),
}

/** While the database works for somebody: its machine's clock. */
let borrowed: { readonly world: World; readonly clock: Clockwork } | undefined

/** Runs what must see the clock of another machine; nothing in it may wait. */
export function onClock<T>(world: World, clock: Clockwork, work: () => T): T {
  borrowed = { world, clock }
  try {
    return work()
  } finally {
    borrowed = undefined
  }
}

class Timer {
  #scheduled: Scheduled | undefined
  readonly #actor: Actor
  readonly #call: () => void
  readonly #ms: number
  readonly #repeats: boolean

  constructor(actor: Actor, call: () => void, ms: number, repeats: boolean) {
    this.#actor = actor
    this.#call = call
    this.#ms = ms
    this.#repeats = repeats
    this.#arm()
  }

  cancel(): void {
    this.#scheduled?.cancel()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    this.cancel()
    this.#arm()
    return this
  }

  close(): this {
    this.cancel()
    return this
  }

  [Symbol.dispose](): void {
    this.cancel()
  }

  #arm(): void {
    const { world, clock } = this.#actor
    const lateMs = world.random.between(0, 0.5)
    this.#scheduled = world.at(clock.worldMs(Math.max(this.#repeats ? 1 : 0, this.#ms)) + lateMs, this.#actor, 'a timer', () => {
      if (this.#repeats) this.#arm()
      this.#call()
    })
  }
}

/** Beyond what a timer of Node.js can wait. */
const LONGEST_MS = 0x7fff_ffff

type Callback = (...values: unknown[]) => void

function timer(repeats: boolean, fallback: (callback: Callback, ms?: number, ...values: unknown[]) => unknown) {
  return (callback: Callback, ms = 0, ...values: unknown[]): unknown => {
    const actor = present.getStore()
    // The engine's own alarms, for statements that take too long: none does, and its clock is not this machine's.
    if (borrowed !== undefined || ms > LONGEST_MS) return undefined
    if (actor === undefined) return fallback(callback, ms, ...values)
    return new Timer(actor, () => callback(...values), Number.isFinite(ms) ? ms : 0, repeats)
  }
}

function clear(handle: unknown): void {
  if (handle instanceof Timer) handle.cancel()
  else if (handle !== undefined) Reflect.apply(realClearTimeout, globalThis, [handle])
}

function wallMs(): number {
  if (borrowed !== undefined) return borrowed.clock.wallMs(borrowed.world.nowMs)
  const actor = present.getStore()
  return actor === undefined ? RealDate.now() : Math.floor(actor.clock.wallMs(actor.world.nowMs))
}

function monotonicMs(): number {
  if (borrowed !== undefined) return borrowed.clock.monotonicMs(borrowed.world.nowMs)
  const actor = present.getStore()
  return actor === undefined ? realNow() : actor.clock.monotonicMs(actor.world.nowMs)
}

const SimulatedDate = new Proxy(RealDate, {
  construct: (target, values, newTarget) => Reflect.construct(target, values.length === 0 ? [wallMs()] : values, newTarget),
  get: (target, key, receiver) => (key === 'now' ? wallMs : Reflect.get(target, key, receiver)),
})

function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms)
  return controller.signal
}

const realTimeoutSignal = AbortSignal.timeout.bind(AbortSignal)

let installed = false

/** Idempotent. */
export function installGlobals(): void {
  if (installed) return
  installed = true
  const immediate = timer(false, (callback, _, ...values) => realSetImmediate(callback, ...values))
  Object.assign(globalThis, {
    setTimeout: timer(false, realSetTimeout),
    setInterval: timer(true, realSetInterval),
    setImmediate: (callback: Callback, ...values: unknown[]) => immediate(callback, 0, ...values),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    Date: SimulatedDate,
  })
  performance.now = monotonicMs
  AbortSignal.timeout = (ms) => (present.getStore() === undefined ? realTimeoutSignal(ms) : timeoutSignal(ms))
}
