/**
 * Base URLs that mean the same: replicas of the API, gateways of a fleet. Calls name one of them; where it is sent is decided here, at each attempt.
 *
 * A client stays with the place that answers, and goes on to the next when it does not.
 */
import { Replicas } from '@sandglass/contract/replicas'

/** A connection was never made, so nothing of the call is anywhere. */
const NEVER_REACHED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

export class Places {
  readonly #byBase = new Map<string, Replicas>()

  /** From now on any of them stands for each. */
  learn(urls: readonly string[]): void {
    const [first, ...rest] = urls.map((url) => url.replace(/\/+$/, ''))
    if (first === undefined || rest.length === 0) return
    if ([first, ...rest].every((url) => this.#byBase.has(url))) return
    const replicas = new Replicas([first, ...rest])
    for (const url of [first, ...rest]) this.#byBase.set(url, replicas)
  }

  /** The same call where it is sent now. */
  at(url: string): string {
    const found = this.#find(url)
    return found === undefined ? url : found.replicas.current + url.slice(found.base.length)
  }

  /** How many other places there are. */
  others(url: string): number {
    return (this.#find(url)?.replicas.size ?? 1) - 1
  }

  /** The place that this call was sent to did not serve it. */
  failed(url: string): void {
    const found = this.#find(url)
    found?.replicas.failed(found.base)
  }

  #find(url: string): { readonly base: string; readonly replicas: Replicas } | undefined {
    for (const [base, replicas] of this.#byBase) if (url.startsWith(base) && /^($|[/?])/.test(url.slice(base.length))) return { base, replicas }
    return undefined
  }
}

export function wasNeverReached(cause: unknown): boolean {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return inner instanceof Error && 'code' in inner && typeof inner.code === 'string' && NEVER_REACHED.has(inner.code)
}
