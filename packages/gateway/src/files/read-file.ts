/** Downloads: a file's bytes or a range of them, and the same without the bytes. */
import { CodedError } from '@sandglass/contract'
import { type HostAnswer, lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { writeAll } from '../http/client-stream.ts'
import { guestQuery } from '../http/raw-query.ts'
import { conditionsOf, type FileHeaders } from './conditions.ts'
import { contentLengthOf, fileHeaders } from './file-headers.ts'

const READ_STATUSES: ReadonlySet<number> = new Set([200, 206])

export async function readFile(call: Call): Promise<Answer> {
  const { response } = call
  const answer = await asWanted(call)
  // What fails before the head is sent can still be told.
  if (answer.status === 304) await answer.bytes(0)
  response.writeHead(answer.status, fileHeaders(answer))
  if (answer.status !== 304) {
    response.flushHeaders()
    const length = contentLengthOf(answer)
    const sent = await writeAll(response, answer, call.world, length)
    if (sent !== (length ?? sent)) throw lostContact()
  }
  response.end()
  return 'streamed'
}

export async function headFile(call: Call): Promise<Answer> {
  const answer = await ask(call, 'HEAD', conditionsOf('HEAD', call.request.headers).headers)
  await answer.bytes(0)
  call.response.writeHead(answer.status, fileHeaders(answer))
  call.response.end()
  return 'streamed'
}

async function asWanted(call: Call): Promise<HostAnswer> {
  const { headers, elseWhole } = conditionsOf('GET', call.request.headers)
  try {
    return await ask(call, 'GET', headers)
  } catch (error) {
    if (!(error instanceof CodedError)) throw error
    if (error.code === 'precondition_failed' && elseWhole !== undefined) return await ask(call, 'GET', elseWhole)
    if (error.code === 'range_not_satisfiable') await tellSize(call)
    throw error
  }
}

/** Who asked for too much is told how much there is. */
async function tellSize(call: Call): Promise<void> {
  const answer = await ask(call, 'HEAD', {})
  await answer.bytes(0)
  const size = contentLengthOf(answer)
  if (size !== undefined) call.response.setHeader('content-range', `bytes */${size}`)
}

/** @throws CodedError `internal` for a status that says another thing about the body than the one that is sent on */
async function ask({ guest, query, session }: Call, method: 'GET' | 'HEAD', headers: FileHeaders): Promise<HostAnswer> {
  const path = `/v1/files${guestQuery({ path: query['path'], user: query['user'] })}`
  const answer = await guest.send({ method, path, headers: { ...headers }, isRepeatable: true, signal: session.signal })
  if (answer.status === 304 ? 'if-none-match' in headers : READ_STATUSES.has(answer.status)) return answer
  answer.cancel()
  throw new CodedError('internal', `The sandbox answered a read with the status ${answer.status}.`)
}
