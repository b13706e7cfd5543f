/** Server-sent events as they come, on a connection that is never taken up again: what a client without the SDK sees. */

import { text } from './bytes.ts'
import { type RawRequest, startRaw } from './raw-http.ts'

export type StreamedEvent = { readonly name: string; readonly data: string }

/** Ends when the body ends, however it ends: whether that was well is for the events to say. */
export async function* eventStream(baseUrl: string, request: RawRequest): AsyncGenerator<StreamedEvent> {
  const response = await startRaw(baseUrl, request)
  let rest = ''
  try {
    for await (const chunk of response) {
      rest += text(chunk)
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) yield eventOf(block)
    }
  } catch {
    // A connection that broke is an end like any other here.
  } finally {
    response.destroy()
  }
}

function eventOf(block: string): StreamedEvent {
  const field = (name: string): string =>
    block
      .split('\n')
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join('\n')
  return { name: field('event'), data: field('data') }
}
