/** Output of a process over plain HTTP: exact bytes from an offset, taken up again where a connection broke. */
import type { DataPlane } from './data-plane.ts'
import { SandglassError } from './error.ts'
import { type Known, onlyKnown } from './known-options.ts'
import type { Gap } from './output-queue.ts'
import { Reconnects } from './reconnects.ts'
import { DEFAULT_RECONNECT_MS } from './session.ts'
import { chunksOf } from './streams.ts'

export type OutputOptions = {
  /** Default `stdout`. A terminal has only `stdout`. */
  readonly stream?: 'stdout' | 'stderr' | undefined
  /** Offset of the first byte wanted. Default 0. */
  readonly since?: number | undefined
  /** Go on until the process ends. Default false: what is there now. */
  readonly follow?: boolean | undefined
  /** Called when bytes are no longer kept; reading then continues behind the gap. Without it `output_gone` is thrown. */
  readonly onGap?: ((gap: Gap) => void) | undefined
  /** Stops reading; the loop then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: Known<OutputOptions> = { stream: true, since: true, follow: true, onGap: true, signal: true }

const OFFSET_HEADER = 'sandglass-offset'
const OPEN_TIMEOUT_MS = 60_000

export async function* readOutput(plane: DataPlane, processId: string, options: OutputOptions): AsyncGenerator<Uint8Array, void, undefined> {
  onlyKnown('output', options, OPTIONS)
  const reconnects = new Reconnects(plane.transport.world, DEFAULT_RECONNECT_MS, options.signal)
  let position = options.since ?? 0
  for (;;) {
    try {
      const response = await openOutput(plane, processId, options, position)
      position = skipGap(response, position, options)
      for await (const bytes of chunksOf(response.body)) {
        reconnects.heard()
        position += bytes.byteLength
        yield bytes
      }
      return
    } catch (error) {
      await reconnects.after(error)
    }
  }
}

function openOutput(plane: DataPlane, processId: string, options: OutputOptions, since: number): Promise<Response> {
  const query = new URLSearchParams({ stream: options.stream ?? 'stdout', since: String(since) })
  if (options.follow === true) query.set('follow', '1')
  if (options.onGap !== undefined) query.set('allow_gap', '1')
  return plane.transport.open({
    method: 'GET',
    url: `${plane.base}/processes/${encodeURIComponent(processId)}/output?${query}`,
    repeatable: true,
    signal: options.signal,
    timeoutMs: OPEN_TIMEOUT_MS,
  })
}

function skipGap(response: Response, wanted: number, options: OutputOptions): number {
  const header = response.headers.get(OFFSET_HEADER)
  if (header === null) return wanted
  const offset = Number(header)
  if (!Number.isSafeInteger(offset) || offset < wanted)
    throw new SandglassError('internal', `The server sent output from byte ${header} where ${wanted} was asked for.`)
  if (offset > wanted) options.onGap?.({ from: wanted, to: offset })
  return offset
}
