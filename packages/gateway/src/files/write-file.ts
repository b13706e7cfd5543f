/** Uploads. The guest writes to a temporary file and renames, so a body that is cut leaves nothing. */
import { CodedError, FileWrittenSchema, LIMITS, parserOf } from '@sandglass/contract'
import { parseGuestJson } from '../hosts/guest-client.ts'
import type { Answer, Call } from '../http/call.ts'
import { guestQuery } from '../http/raw-query.ts'
import { uploadFrom } from '../http/upload.ts'
import { conditionsOf } from './conditions.ts'

const written = parserOf(FileWrittenSchema)
const ANSWER_BYTES = 4_096

export async function writeFile(call: Call): Promise<Answer> {
  const { guest, session, request, query } = call
  // Taken for the whole file, a part would destroy the rest (RFC 9110, 14.5).
  if (request.headers['content-range'] !== undefined) throw new CodedError('invalid_request', 'A part of a file cannot be uploaded; send all of it.')
  const path = `/v1/files${guestQuery({ path: query['path'], user: query['user'], mode: query['mode'], parents: query['parents'] })}`
  const answer = await guest.send({
    method: 'PUT',
    path,
    headers: { ...conditionsOf('PUT', request.headers).headers, ...lengthHeader(call) },
    body: uploadFrom(request, LIMITS.uploadIdleMs),
    isRepeatable: false,
    isWork: true,
    signal: session.signal,
  })
  return { status: answer.status === 201 ? 201 : 200, json: parseGuestJson(await guest.bytes(answer, ANSWER_BYTES), written) }
}

/** Lets the guest tell a whole body from a short one. */
export function lengthHeader({ request }: Call): { 'content-length'?: string } {
  const length = request.headers['content-length']
  return length === undefined ? {} : { 'content-length': length }
}

export async function deleteFile({ guest, session, query }: Call): Promise<Answer> {
  const path = `/v1/files${guestQuery({ path: query['path'], user: query['user'], recursive: query['recursive'] })}`
  const answer = await guest.send({ method: 'DELETE', path, isRepeatable: false, isWork: true, signal: session.signal })
  await guest.bytes(answer, ANSWER_BYTES)
  return { status: 204 }
}
