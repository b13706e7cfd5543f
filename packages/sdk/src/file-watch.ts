/** Changes in a directory, as server-sent events. */
import { FileEventSchema, type FileEvent as WireFileEvent } from '@sandglass/contract/file'
import { parseProblem } from '@sandglass/contract/problem'
import { parserOf } from '@sandglass/contract/schema'
import type { DataPlane } from './data-plane.ts'
import { jsonOf, parseAnswer, SandglassError } from './error.ts'
import { flag, pathQuery, type SandboxPath } from './file-path.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { Reconnects } from './reconnects.ts'
import { DEFAULT_RECONNECT_MS } from './session.ts'
import { chunksOf } from './streams.ts'

export type FileEvent = {
  /** `overflow`: changes may have been missed; look at the directory yourself. */
  readonly type: 'created' | 'modified' | 'deleted' | 'moved' | 'overflow'
  readonly path: string | undefined
  /** Where it moved to. */
  readonly to: string | undefined
  readonly at: Date | undefined
}

export type WatchOptions = {
  /** Default false. */
  readonly recursive?: boolean | undefined
  readonly user?: string | undefined
  /** Called when changes from now on will be seen. */
  readonly onReady?: (() => void) | undefined
  /** Stops watching; the loop then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: Known<WatchOptions> = { recursive: true, user: true, onReady: true, signal: true }

const parser = parserOf(FileEventSchema)
const MAX_LINE_CHARACTERS = 64 * 1024
const OPEN_TIMEOUT_MS = 30_000

export type ServerEvent = { readonly name: string; readonly data: string }

/** Splits a stream of server-sent events. */
export async function* serverEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  let name = 'message'
  let data: string[] = []
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE_CHARACTERS) throw new SandglassError('internal', 'The server sent an event that is too long.')
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { name, data: data.join('\n') }
        name = 'message'
        data = []
      } else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
      else if (line.startsWith('event:')) name = line.slice(6).trim()
    }
  }
}

/** The event's name is its type. @throws SandglassError what an `error` event says */
function wireEventOf({ name, data }: ServerEvent): WireFileEvent {
  const value = jsonOf(data)
  const problem = name === 'error' ? parseProblem(value) : undefined
  if (problem !== undefined) throw new SandglassError(problem.code, problem.detail, { requestId: problem.request_id, retryable: problem.retryable })
  return parseAnswer((input) => parser.parse(input), typeof value === 'object' ? { ...value, type: name } : value, 'event')
}

function eventOf(wire: WireFileEvent): FileEvent | undefined {
  if (wire.type === 'ready' || wire.type === 'heartbeat') return undefined
  return { type: wire.type, path: wire.path, to: wire.to, at: wire.at_ms === undefined ? undefined : new Date(wire.at_ms) }
}

export async function* watchFiles(plane: DataPlane, path: SandboxPath, options: WatchOptions): AsyncGenerator<FileEvent, void, undefined> {
  onlyKnown('watch', options, OPTIONS)
  const reconnects = new Reconnects(plane.transport.world, DEFAULT_RECONNECT_MS, options.signal)
  let wasReady = false
  for (;;) {
    try {
      const url = `${plane.base}/files/watch${pathQuery(path, { recursive: flag(options.recursive), user: options.user })}`
      const headers = { accept: 'text/event-stream' }
      const response = await plane.transport.open({ method: 'GET', url, headers, repeatable: true, signal: options.signal, timeoutMs: OPEN_TIMEOUT_MS })
      for await (const event of serverEvents(chunksOf(response.body))) {
        const wire = wireEventOf(event)
        if (wire.type === 'ready') {
          reconnects.heard()
          // Between two connections nobody watched.
          if (wasReady) yield { type: 'overflow', path: undefined, to: undefined, at: undefined }
          else options.onReady?.()
          wasReady = true
        }
        const change = eventOf(wire)
        if (change !== undefined) yield change
      }
      throw new SandglassError('lost_contact')
    } catch (error) {
      await reconnects.after(error)
    }
  }
}
