/** Keeps the feed of invalidations open, and says when it is there and when it is not. */
import { reasonOf } from '../log.ts'
import { pause, type World } from '../world.ts'
import type { ControlClient } from './control-client.ts'
import type { SessionCheck } from './session-check.ts'

const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 1_000

export class Feed {
  readonly #client: ControlClient
  readonly #check: SessionCheck
  readonly #world: World
  readonly #stop = new AbortController()
  #isConnected = false
  #ended: Promise<void> = Promise.resolve()

  constructor(client: ControlClient, check: SessionCheck, world: World) {
    this.#client = client
    this.#check = check
    this.#world = world
    world.metrics.from('sandglass_gateway_feed_connected', () => (this.#isConnected ? 1 : 0))
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  start(): void {
    this.#ended = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    let retryMs = RETRY_MIN_MS
    while (!this.#stop.signal.aborted) {
      const reason = await this.#follow()
      if (this.#isConnected) {
        retryMs = RETRY_MIN_MS
        this.#isConnected = false
        this.#check.feedLost()
      }
      if (this.#stop.signal.aborted) return
      this.#world.log('warn', 'feed_lost', { reason })
      this.#world.metrics.count('sandglass_gateway_feed_lost_total')
      await pause(this.#world, retryMs, this.#stop.signal)
      retryMs = Math.min(RETRY_MAX_MS, 2 * retryMs)
    }
  }

  /** Until it is lost; the reason why. */
  async #follow(): Promise<string> {
    try {
      for await (const event of this.#client.feed(this.#stop.signal)) {
        if (!this.#isConnected) {
          this.#isConnected = true
          this.#world.log('info', 'feed_connected')
          this.#check.feedConnected()
        }
        this.#check.event(event)
      }
      return 'the control plane ended it'
    } catch (error) {
      return reasonOf(error)
    }
  }
}
