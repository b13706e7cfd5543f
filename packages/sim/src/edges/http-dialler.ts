/** The host's way to its control planes: the simulated network. */

import { presentMachine } from '../host/machine.ts'
import { presentActor } from '../kernel/actor.ts'
import type { AnswerStream } from '../network/stream.ts'

type HttpRequest = { readonly headers: Readonly<Record<string, string>>; readonly body?: string; readonly signal: AbortSignal }

export function httpDialler(): (url: URL, request: HttpRequest) => Promise<AnswerStream> {
  const actor = presentActor()
  const { network, name } = presentMachine()
  return (url, { headers, body, signal }) =>
    network.send(
      { end: name, actor },
      { method: body === undefined ? 'GET' : 'POST', url: `${url.pathname}${url.search}`, headers, body },
      signal,
      network.named(url.hostname),
    )
}
