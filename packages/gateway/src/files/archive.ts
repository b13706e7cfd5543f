/** Trees as tar streams. */
import { ArchiveExtractedSchema, LIMITS, parserOf } from '@sandglass/contract'
import { parseGuestJson } from '../hosts/guest-client.ts'
import { type HostAnswer, lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { writeAll } from '../http/client-stream.ts'
import { guestQuery } from '../http/raw-query.ts'
import { uploadFrom } from '../http/upload.ts'
import { lengthHeader } from './write-file.ts'

const extracted = parserOf(ArchiveExtractedSchema)
const ANSWER_BYTES = 4_096
const COUNT = /^[0-9]{1,12}$/

export async function readArchive(call: Call): Promise<Answer> {
  const { response, query } = call
  const path = `/v1/files/archive${guestQuery({ path: query['path'], user: query['user'] })}`
  const answer = await call.guest.send({ method: 'GET', path, isRepeatable: true, signal: call.session.signal })
  response.writeHead(200, {
    'content-type': 'application/x-tar',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    trailer: 'Sandglass-Entries, Sandglass-Skipped',
  })
  response.flushHeaders()
  await writeAll(response, answer, call.world)
  const entries = count(answer, 'sandglass-entries')
  // The guest counts at its end what it packed; an archive without it may be cut.
  if (entries === undefined) throw lostContact()
  response.addTrailers({ 'Sandglass-Entries': entries, 'Sandglass-Skipped': count(answer, 'sandglass-skipped') ?? '0' })
  response.end()
  return 'streamed'
}

function count(answer: HostAnswer, name: string): string | undefined {
  const value = answer.trailers[name]
  return typeof value === 'string' && COUNT.test(value) ? value : undefined
}

export async function writeArchive(call: Call): Promise<Answer> {
  const { guest, session, query, request } = call
  const path = `/v1/files/archive${guestQuery({ path: query['path'], user: query['user'] })}`
  const body = uploadFrom(request, LIMITS.uploadIdleMs)
  const answer = await guest.send({ method: 'PUT', path, headers: lengthHeader(call), body, isRepeatable: false, isWork: true, signal: session.signal })
  return { status: 200, json: parseGuestJson(await guest.bytes(answer, ANSWER_BYTES), extracted) }
}
