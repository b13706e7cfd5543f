/** A reader of GET /v1/events, as a client is one: it parses every event by the contract and checks that its `id` is its position. */
import assert from 'node:assert/strict'
import { type Change, type ChangeGap, ChangeGapSchema, ChangePositionSchema, ChangeSchema, type Problem, parseProblem, parserOf } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import type { Rig } from './harness.ts'

const changes = parserOf(ChangeSchema)
const gaps = parserOf(ChangeGapSchema)
const places = parserOf(ChangePositionSchema)

export class EventReader implements AsyncDisposable {
  readonly changes: Change[] = []
  readonly gaps: ChangeGap[] = []
  readonly names: string[] = []
  problem: Problem | undefined
  isOver = false
  position = 0
  readonly #stop = new AbortController()
  #reading: Promise<void> = Promise.resolve()

  /** @param query for example `?since=0` */
  static async open(rig: Pick<Rig, 'url' | 'keys'>, query = '', options: { key?: string; lastEventId?: string } = {}): Promise<EventReader> {
    const reader = new EventReader()
    const response = await fetch(`${rig.url}/v1/events${query}`, {
      headers: {
        authorization: `Bearer ${options.key ?? rig.keys.viewer}`,
        ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
      },
      signal: reader.#stop.signal,
    })
    assert.equal(response.status, 200, await (response.status === 200 ? '' : response.text()))
    assert.equal(response.headers.get('content-type'), 'text/event-stream')
    assert.match(response.headers.get('sandglass-request-id') ?? '', /^rq/)
    reader.#reading = reader.#read(response)
    await until('the feed to be open', () => reader.names.includes('ready') || reader.isOver)
    return reader
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#reading
  }

  async #read(response: Response): Promise<void> {
    let rest = ''
    try {
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const blocks = (rest + text).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) this.#event(block)
      }
    } catch (error) {
      if (!this.#stop.signal.aborted && !(error instanceof TypeError)) throw error
    }
    this.isOver = true
  }

  #event(block: string): void {
    if (/^retry: \d+$/.test(block)) return
    const match = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block)
    assert.ok(match?.[2] !== undefined && match[3] !== undefined, block)
    const data: unknown = JSON.parse(match[3])
    this.names.push(match[2])
    if (match[2] === 'error') {
      this.problem = parseProblem(data)
      return
    }
    const { position } = match[2] === 'change' ? changes.parse(data) : match[2] === 'gap' ? gaps.parse(data) : places.parse(data)
    assert.equal(String(position), match[1])
    this.position = position
    if (match[2] === 'change') this.changes.push(changes.parse(data))
    if (match[2] === 'gap') this.gaps.push(gaps.parse(data))
  }
}
