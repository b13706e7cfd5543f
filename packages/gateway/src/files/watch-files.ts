/** Changes below a path, as server-sent events. */
import { FileEventSchema, parserOf, problemOf } from '@sandglass/contract'
import { lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { ClientGone } from '../http/client-stream.ts'
import { beginEvents, writeEvent } from '../http/event-stream.ts'
import { jsonLines } from '../http/json-lines.ts'
import { guestQuery } from '../http/raw-query.ts'
import { codedError } from '../problems/send-problem.ts'

const fileEvent = parserOf(FileEventSchema)

export async function watchFiles(call: Call): Promise<Answer> {
  const { response, query, session } = call
  session.becomeStream()
  const path = `/v1/files/watch${guestQuery({ path: query['path'], user: query['user'], recursive: query['recursive'] })}`
  const answer = await call.guest.send({ method: 'GET', path, isRepeatable: true, signal: session.signal })
  beginEvents(response)
  try {
    for await (const { type, ...event } of jsonLines(answer.chunks(), fileEvent)) await writeEvent(response, type, event)
    // A watch has no end of its own.
    throw lostContact()
  } catch (error) {
    if (error instanceof ClientGone) throw error
    await writeEvent(response, 'error', problemOf(codedError(error), { requestId: call.requestId }))
  }
  response.end()
  return 'streamed'
}
