/**
 * GET …/output: exact bytes of one stream, from an offset.
 *
 * The answer begins when the process's window is known, so that bytes that are gone are an error and not a silent jump. Whether it ended
 * well is in the trailers, and an end that is not well breaks the connection.
 */
import { CodedError, type Process } from '@sandglass/contract'
import { aboutProcess, outputEvents, type StreamName } from '../exec/guest-output.ts'
import { lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { writeChunk } from '../http/client-stream.ts'
import { guestQuery } from '../http/raw-query.ts'

const TRAILERS = 'Sandglass-Stream-End, Sandglass-Exit-Code, Sandglass-Exit-Signal'

export async function readOutput(call: Call): Promise<Answer> {
  const { query } = call
  const stream: StreamName = query['stream'] === 'stderr' ? 'stderr' : 'stdout'
  const since = Number(query['since'] ?? '0')
  const follow = query['follow'] ?? '0'
  if (follow === '1') call.session.becomeStream()
  const path = `/v1/processes/${call.process}/output${guestQuery({ stream, since, follow })}`
  const answer = await call.guest.send({ method: 'GET', path, isRepeatable: true, signal: call.session.signal })
  const reader = new OutputReader(call, stream, since, query['allow_gap'] === '1')
  try {
    for await (const events of outputEvents(answer, { stdout: stream === 'stdout' ? since : 0, stderr: stream === 'stderr' ? since : 0 }, call.world)) {
      for (const event of events) {
        if (event.type === 'started') reader.started(event.process)
        else if (event.type === 'gap' && event.stream === stream) reader.gap(event.to)
        else if (event.type === 'data' && event.stream === stream) await reader.data(event.offset, event.bytes)
        else if (event.type === 'exit' || event.type === 'end') return reader.end(event.type, event.type === 'exit' ? event.process : undefined)
      }
    }
    throw lostContact()
  } catch (error) {
    throw aboutProcess(error, reader.processId)
  }
}

class OutputReader {
  readonly #call: Call
  readonly #stream: StreamName
  readonly #allowGap: boolean
  #offset: number
  #process: Process | undefined

  constructor(call: Call, stream: StreamName, since: number, allowGap: boolean) {
    this.#call = call
    this.#stream = stream
    this.#offset = since
    this.#allowGap = allowGap
  }

  get processId(): string | undefined {
    return this.#process?.id
  }

  started(process: Process): void {
    this.#process = process
    const window = process[this.#stream]
    // A gap will be told; the answer waits for it.
    if (this.#offset >= window.start) this.#begin()
  }

  gap(to: number): void {
    if (to === this.#offset) return
    if (!this.#allowGap || this.#call.response.headersSent) throw this.#gone(to)
    this.#offset = to
    this.#begin()
  }

  async data(offset: number, bytes: Uint8Array): Promise<void> {
    if (!this.#call.response.headersSent) throw this.#gone(offset)
    await writeChunk(this.#call.response, bytes)
  }

  end(how: 'exit' | 'end', process: Process | undefined): Answer {
    const { response } = this.#call
    if (!response.headersSent) this.#begin()
    response.addTrailers({
      'Sandglass-Stream-End': how,
      ...(process?.exit_code == null ? {} : { 'Sandglass-Exit-Code': String(process.exit_code) }),
      ...(process?.signal == null ? {} : { 'Sandglass-Exit-Signal': headerText(process.signal) }),
    })
    response.end()
    return 'streamed'
  }

  #gone(kept: number): CodedError {
    const detail = `Output of ${this.#stream} before offset ${kept} is no longer kept. Read from there, or allow the gap (\`allow_gap\`; \`onGap\` in the SDK).`
    return new CodedError('output_gone', detail)
  }

  #begin(): void {
    const { response } = this.#call
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'sandglass-offset': String(this.#offset),
      'sandglass-process-id': headerText(this.#process?.id ?? ''),
      'sandglass-process-state': this.#process?.state ?? 'running',
      trailer: TRAILERS,
    })
    response.flushHeaders()
  }
}

/** Only what may stand in a header; the rest of a guest's word is dropped. */
function headerText(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9._+-]/g, '').slice(0, 64)
}
