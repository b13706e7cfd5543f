/**
 * Several equal servers behind one client: whom to ask, and whom next.
 *
 * Replicas of a role hold nothing that the tables do not, so any of them answers anything. A client stays with the one that answered last, which is
 * known to be there, and goes on to the next when that one fails or is slow. A server that is cut off refuses nothing, it is only silent, so
 * waiting for an error was rejected: behind a short patience the next one is asked beside it, and the first answer counts. What is asked this way
 * must be safe to reach several replicas.
 */

export const REPLICAS_MAX = 16

/**
 * A comma-separated list of base URLs, each without a slash at its end, in the order given.
 * @returns undefined when one of them is no http or https URL, carries a password, or there are none or too many
 */
export function parseUrls(text: string): readonly [string, ...string[]] | undefined {
  const parts = text.split(',').map((part) => part.trim())
  const urls: string[] = []
  for (const part of parts) {
    const url = URL.parse(part)
    if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined
    const base = url.href.replace(/\/+$/, '')
    if (!urls.includes(base)) urls.push(base)
  }
  const [first, ...rest] = urls
  return first === undefined || urls.length > REPLICAS_MAX ? undefined : [first, ...rest]
}

export class Replicas {
  readonly #urls: readonly [string, ...string[]]
  readonly #onMove = new Set<(from: string) => void>()
  #at: number

  /** @param at which is asked first, so that many clients do not all begin at the same; any integer */
  constructor(urls: readonly [string, ...string[]], at = 0) {
    this.#urls = urls
    this.#at = at % urls.length
  }

  get size(): number {
    return this.#urls.length
  }

  get current(): string {
    return this.#urls[this.#at] ?? this.#urls[0]
  }

  /** All of them, the current one first. */
  inTurn(): string[] {
    return [...this.#urls.slice(this.#at), ...this.#urls.slice(0, this.#at)]
  }

  /** It is the one to stay with. */
  answered(url: string): void {
    this.#moveTo(this.#urls.indexOf(url))
  }

  /** On to the next, unless somebody has moved on already. */
  failed(url: string): void {
    if (url === this.current) this.#moveTo((this.#at + 1) % this.#urls.length)
  }

  /** Called with the one that is no longer asked. @returns removes the listener */
  onMove(listener: (from: string) => void): () => void {
    this.#onMove.add(listener)
    return () => void this.#onMove.delete(listener)
  }

  #moveTo(at: number): void {
    if (at === -1 || at === this.#at) return
    const from = this.current
    this.#at = at
    for (const listener of this.#onMove) listener(from)
  }
}

export type AskOptions = {
  /** Milliseconds without an answer behind which the next one is asked as well. */
  readonly patienceMs: number
  /** Whether this error is what a server says to the question, which the others would say too. */
  readonly isAnswer: (error: unknown) => boolean
  readonly signal?: AbortSignal
}

/**
 * Asks each replica at most once, and takes the first answer; who was asked beside it is let go.
 * @throws what a server answered; else what the one that was asked first failed with
 */
export function askReplicas<T>(replicas: Replicas, ask: (url: string, signal: AbortSignal) => Promise<T>, options: AskOptions): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const left = replicas.inTurn()
  const open = new Set<AbortController>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let failure: { readonly error: unknown } | undefined
  let isOver = false

  const end = (url: string | undefined, settle: () => void): void => {
    isOver = true
    clearTimeout(timer)
    if (url !== undefined) replicas.answered(url)
    settle()
    for (const controller of open) controller.abort(new Error('another replica has answered'))
  }
  const next = (): void => {
    clearTimeout(timer)
    const url = left.shift()
    if (url === undefined) {
      if (open.size === 0) end(undefined, () => reject(failure?.error))
      return
    }
    if (left.length > 0) timer = setTimeout(next, options.patienceMs)
    const controller = new AbortController()
    open.add(controller)
    const signal = options.signal === undefined ? controller.signal : AbortSignal.any([options.signal, controller.signal])
    ask(url, signal).then(
      (answer) => {
        open.delete(controller)
        if (!isOver) end(url, () => resolve(answer))
      },
      (error: unknown) => {
        open.delete(controller)
        if (isOver) return
        if (options.isAnswer(error)) return end(url, () => reject(error))
        failure ??= { error }
        if (options.signal?.aborted === true) return end(undefined, () => reject(failure?.error))
        next()
      },
    )
  }
  next()
  return promise
}
