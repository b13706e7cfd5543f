/**
 * The change feed of the tenant, as one sequence that outlives its connections.
 *
 * Every event names its position, and a new connection asks for what is behind the last one, so nothing is skipped or doubled when a connection breaks. A
 * server that stops sending its heartbeats counts as lost.
 */
import { ChangeGapSchema, ChangePositionSchema, ChangeSchema } from '@sandglass/contract/change'
import { LIMITS } from '@sandglass/contract/limits'
import { parseProblem } from '@sandglass/contract/problem'
import { parserOf } from '@sandglass/contract/schema'
import { jsonOf, parseAnswer, SandglassError } from './error.ts'
import { type ServerEvent, serverEvents } from './file-watch.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { Reconnects } from './reconnects.ts'
import { DEFAULT_RECONNECT_MS } from './session.ts'
import { chunksOf } from './streams.ts'
import { bodyOf, type Transport } from './transport.ts'
import type { World } from './world.ts'

export type SandboxChange = {
  readonly kind: 'change'
  /** Give it as `since` to go on behind this one, also in another process. */
  readonly position: number
  /** `sandbox.` and the status that it came to, or `sandbox.updated`, `sandbox.extended`. */
  readonly type: string
  readonly sandboxId: string
  readonly generation: number
  readonly reason: string | undefined
  readonly at: Date
}

/** Changes that this reader cannot see any more: list the sandboxes again, then go on. */
export type ChangeGap = {
  readonly kind: 'gap'
  readonly position: number
  /** `expired`: those from `from` up to `position` are no longer kept. `unknown`: `since` was no position of this feed. */
  readonly reason: 'expired' | 'unknown'
  readonly from: number | undefined
}

export type EventsOptions = {
  /** A position to go on behind; 0 is everything that is kept. Default: from now on. */
  readonly since?: number | undefined
  /** Called with the position from which everything will be seen, once. */
  readonly onReady?: ((position: number) => void) | undefined
  /** Milliseconds for which a lost connection is tried again. Default 60,000. */
  readonly reconnectMs?: number | undefined
  /** Stops it; the loop then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: Known<EventsOptions> = { since: true, onReady: true, reconnectMs: true, signal: true }

const changes = parserOf(ChangeSchema)
const gaps = parserOf(ChangeGapSchema)
const places = parserOf(ChangePositionSchema)
const OPEN_TIMEOUT_MS = 60_000
const SILENCE_MS = 3 * LIMITS.eventHeartbeatMs

type Seen = SandboxChange | ChangeGap | { readonly kind: 'place'; readonly position: number; readonly isReady: boolean }

/** @throws SandglassError what an `error` event says */
function seenOf({ name, data }: ServerEvent): Seen | undefined {
  const value = jsonOf(data)
  if (name === 'error') {
    const problem = parseProblem(value)
    throw new SandglassError(problem?.code ?? 'lost_contact', problem?.detail, { requestId: problem?.request_id })
  }
  if (name === 'change') {
    const { sandbox_id: sandboxId, reason, at, ...rest } = parseAnswer((input) => changes.parse(input), value, 'event')
    return { kind: 'change', ...rest, sandboxId, reason: reason ?? undefined, at: new Date(at) }
  }
  if (name === 'gap') {
    const gap = parseAnswer((input) => gaps.parse(input), value, 'event')
    return { kind: 'gap', ...gap, from: gap.from ?? undefined }
  }
  if (name !== 'ready' && name !== 'heartbeat') return undefined
  return { kind: 'place', ...parseAnswer((input) => places.parse(input), value, 'event'), isReady: name === 'ready' }
}

/** Events of one connection. @throws SandglassError `lost_contact` when it ends or falls silent */
async function* connectionEvents(transport: Transport, url: string, signal: AbortSignal | undefined): AsyncGenerator<Seen, void, undefined> {
  const silence = new AbortController()
  const stop = signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal])
  const watch = (world: World) => world.timer(SILENCE_MS, () => silence.abort(new SandglassError('lost_contact')))
  const headers = { accept: 'text/event-stream' }
  const response = await transport.open({ method: 'GET', url, headers, repeatable: false, signal: stop, timeoutMs: OPEN_TIMEOUT_MS })
  let cancel = watch(transport.world)
  try {
    for await (const event of serverEvents(chunksOf(bodyOf(response, stop)))) {
      cancel()
      const seen = seenOf(event)
      if (seen !== undefined) yield seen
      cancel = watch(transport.world)
    }
    throw new SandglassError('lost_contact')
  } finally {
    cancel()
    silence.abort()
  }
}

export async function* changeEvents(transport: Transport, url: string, options: EventsOptions): AsyncGenerator<SandboxChange | ChangeGap, void, undefined> {
  onlyKnown('events', options, OPTIONS)
  const reconnects = new Reconnects(transport.world, options.reconnectMs ?? DEFAULT_RECONNECT_MS, options.signal)
  let position = options.since
  let wasReady = false
  for (;;) {
    try {
      const query = position === undefined ? '' : `?since=${position}`
      for await (const seen of connectionEvents(transport, `${url}/v1/events${query}`, options.signal)) {
        reconnects.heard()
        position = seen.position
        if (seen.kind !== 'place') yield seen
        else if (seen.isReady && !wasReady) {
          wasReady = true
          options.onReady?.(seen.position)
        }
      }
    } catch (error) {
      await reconnects.after(error)
    }
  }
}
