/**
 * The network between hosts, clients and control planes. A request or an answer may be slow, lost, or come twice; what a partition holds up may come out
 * at its end, when nobody waits for it any more. Within one open stream the order is kept, as TCP keeps it.
 */
import type { Actor } from '../kernel/actor.ts'
import type { World } from '../kernel/world.ts'
import type { Replica } from '../replica/replica.ts'
import { AnswerStream } from './stream.ts'

export type Request = {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PATCH'
  /** Path and query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export type Link = {
  /** The host or client. */
  readonly end: string
  readonly actor: Actor
}

export type NetworkFaults = { lost: number; answerLost: number; doubled: number; slow: number; slowMs: number }

/** What the network knows of a control plane. */
export type Served = Pick<Replica, 'name' | 'listens' | 'handle' | 'stream'>

/** So much later than it would come by itself may a second copy of a message come. */
const SECOND_COPY_MS = 20_000

/** Behind the last message of its senders, once nothing is slow any more, this network has told everything. */
export const latestMs = ({ doubled, slow, slowMs }: NetworkFaults): number => (doubled > 0 ? SECOND_COPY_MS : 0) + (slow > 0 ? slowMs : 0) + 1_000

const WATCH = '/watch?'

export class Network {
  readonly faults: NetworkFaults = { lost: 0, answerLost: 0, doubled: 0, slow: 0, slowMs: 0 }
  readonly world: World
  readonly #replicas: readonly Served[]
  readonly #cut = new Map<string, (() => void)[]>()
  readonly #preferred = new Map<string, Served>()
  readonly #watches = new Map<string, { readonly stream: AnswerStream; readonly actor: Actor }>()
  /** Lines of watches by host, oldest first. */
  readonly #told = new Map<string, Buffer[]>()

  constructor(world: World, replicas: readonly Served[]) {
    this.world = world
    this.#replicas = replicas
  }

  /** Of every control plane. */
  get urls(): [string, ...string[]] {
    const [first = '', ...others] = this.#replicas.map(({ name }) => `https://${name}`)
    return [first, ...others]
  }

  /** @throws Error when no control plane is called so */
  named(name: string): Served {
    const found = this.#replicas.find((replica) => replica.name === name)
    if (found === undefined) throw new Error(`there is no control plane ${name}`)
    return found
  }

  /** Nothing passes between the two until `heal`. */
  cut(end: string, replica: string): void {
    this.world.note('network', `cuts ${end} from ${replica}`)
    const key = linkOf(end, replica)
    if (!this.#cut.has(key)) this.#cut.set(key, [])
  }

  heal(end: string, replica: string): void {
    const key = linkOf(end, replica)
    const held = this.#cut.get(key)
    if (held === undefined) return
    this.world.note('network', `joins ${end} and ${replica} again`)
    this.#cut.delete(key)
    for (const pass of held) this.world.at(this.world.random.between(1, 50), undefined, 'a healed link', pass)
  }

  healAll(): void {
    for (const key of [...this.#cut.keys()]) {
      const [end = '', replica = ''] = key.split(' ')
      this.heal(end, replica)
    }
  }

  isCut(end: string, replica: string): boolean {
    return this.#cut.has(linkOf(end, replica))
  }

  /** An order of a watch, as it was told once, is told again on the host's present watch. @returns whether there was one */
  tellAgain(host: string): boolean {
    const lines = this.#told.get(host) ?? []
    const watch = this.#watches.get(host)
    if (lines.length === 0 || watch === undefined || watch.stream.ended) return false
    const line = this.world.random.pick(lines)
    this.world.at(0, watch.actor, 'an order comes again', () => watch.stream.push(line))
    this.world.note('network', `tells ${host} an old order again: ${line.toString('utf8').slice(0, 40)}`)
    return true
  }

  /** @throws Error when there is no answer, the signal's reason when it fires */
  send(from: Link, request: Request, signal: AbortSignal, to: Served = this.#route(from.end)): Promise<AnswerStream> {
    const { world } = this
    return new Promise((resolve, reject) => {
      let open = true
      const settle = (act: () => void, ms: number): void => {
        world.at(ms, from.actor, 'an answer', () => {
          if (!open) return
          open = false
          act()
        })
      }
      signal.addEventListener('abort', () => {
        open = false
        reject(signal.reason)
      })
      if (signal.aborted) return
      const isWatch = request.url.includes(WATCH)
      const copies =
        !isWatch && world.random.chance(this.faults.doubled) ? [this.#delayMs(), this.#delayMs() + world.random.between(0, SECOND_COPY_MS)] : [this.#delayMs()]
      if (copies.length > 1) world.note('network', `doubles ${request.method} ${request.url.split('?')[0]} of ${from.end}`)
      for (const delayMs of copies) {
        this.#pass(from.end, to.name, delayMs, this.faults.lost, () => {
          if (!to.listens) return settle(() => reject(refused()), 1)
          if (isWatch) return this.#watch(from, to, request, signal, { settle, resolve, reject })
          to.handle(request, (answer) => {
            if (answer === undefined) return settle(() => reject(reset()), 1)
            this.#pass(from.end, to.name, this.#delayMs(), this.faults.answerLost, () => {
              const stream = new AnswerStream(answer.status)
              stream.push(Buffer.from(answer.body))
              stream.end()
              settle(() => resolve(stream), 0)
            })
          })
        })
      }
    })
  }

  #watch(
    from: Link,
    to: Served,
    request: Request,
    signal: AbortSignal,
    { settle, resolve, reject }: { settle: (act: () => void, ms: number) => void; resolve: (stream: AnswerStream) => void; reject: (error: Error) => void },
  ): void {
    let stream: AnswerStream | undefined
    let lastMs = 0
    let left = false
    const inOrder = (act: () => void): void => {
      lastMs = Math.max(lastMs, this.world.nowMs + this.#delayMs())
      this.#pass(from.end, to.name, lastMs - this.world.nowMs, 0, () => this.world.at(0, from.actor, 'a line of a watch', act))
    }
    const close = to.stream(request, {
      begin: (status) => {
        const opened = new AnswerStream(status)
        stream = opened
        if (status === 200 && !left) this.#watches.set(from.end, { stream: opened, actor: from.actor })
        this.#pass(from.end, to.name, this.#delayMs(), 0, () => settle(() => resolve(opened), 0))
      },
      data: (chunk) => {
        const line = Buffer.from(chunk)
        if (/"type":"(start|end|pool)"/.test(line.toString('utf8'))) this.#remember(from.end, line)
        if (left) this.#pass(from.end, to.name, this.#delayMs(), 0, () => close())
        else inOrder(() => stream?.push(line))
      },
      end: (failure) => {
        if (stream === undefined) settle(() => reject(failure ?? reset()), 1)
        else inOrder(() => stream?.end(failure))
      },
    })
    const leave = (): void => {
      // Whoever writes to one that is gone is told so, should it not have heard.
      left = true
      stream?.end(signal.reason)
      this.#pass(from.end, to.name, this.#delayMs(), 0, close)
    }
    // Nobody may be there any more when it is opened.
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    from.actor.onEnd(leave)
  }

  #remember(end: string, line: Buffer): void {
    const lines = this.#told.get(end) ?? []
    lines.push(line)
    this.#told.set(end, lines.slice(-40))
  }

  #pass(end: string, replica: string, delayMs: number, lost: number, act: () => void): void {
    const { world } = this
    if (world.random.chance(lost)) return
    world.at(delayMs, undefined, 'a message', () => {
      const held = this.#cut.get(linkOf(end, replica))
      if (held === undefined) act()
      else if (world.random.chance(0.6)) held.push(act)
    })
  }

  #delayMs(): number {
    const { random } = this.world
    return random.chance(this.faults.slow) ? random.between(1, this.faults.slowMs) : random.between(0.2, 4)
  }

  /** As a load balancer does: the same one for a while. */
  #route(end: string): Served {
    const { random } = this.world
    const known = this.#preferred.get(end)
    if (known?.listens === true && random.chance(0.85)) return known
    const listening = this.#replicas.filter((replica) => replica.listens)
    const chosen = random.pick(listening.length > 0 ? listening : this.#replicas)
    this.#preferred.set(end, chosen)
    return chosen
  }
}

const linkOf = (end: string, replica: string): string => `${end} ${replica}`
const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const reset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
