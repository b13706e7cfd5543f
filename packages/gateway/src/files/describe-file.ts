/** What a path is, and what a directory holds. */
import { type FileInfo, FileInfoSchema, FileListSchema, LIMITS, parserOf } from '@sandglass/contract'
import { downloadChunks } from '../hosts/steady-body.ts'
import type { Answer, Call } from '../http/call.ts'
import { writeChunk } from '../http/client-stream.ts'
import { jsonLines } from '../http/json-lines.ts'
import { guestQuery } from '../http/raw-query.ts'

const info = parserOf(FileInfoSchema)
const list = parserOf(FileListSchema)
const NDJSON_MEDIA_TYPE = 'application/x-ndjson'

export async function statFile({ guest, session, query }: Call): Promise<Answer> {
  const path = `/v1/files/stat${guestQuery({ path: query['path'], user: query['user'], follow: query['follow'] })}`
  return { status: 200, json: await guest.json({ method: 'GET', path, isRepeatable: true, signal: session.signal }, info) }
}

export async function listFiles(call: Call): Promise<Answer> {
  const { guest, session, query, request } = call
  const path = `/v1/files/list${guestQuery({ path: query['path'], user: query['user'], cursor: query['cursor'], limit: query['limit'] })}`
  if (request.headers.accept?.includes(NDJSON_MEDIA_TYPE) === true) return streamList(call, path)
  return { status: 200, json: await guest.json({ method: 'GET', path, isRepeatable: true, signal: session.signal }, list, LIMITS.guestListBytes) }
}

const lineOf = (entry: FileInfo): string => `${JSON.stringify(entry)}\n`

/** All entries of a directory of any size, one line each. */
async function streamList({ guest, session, response, world }: Call, path: string): Promise<Answer> {
  const answer = await guest.send({ method: 'GET', path, headers: { accept: NDJSON_MEDIA_TYPE }, isRepeatable: true, signal: session.signal })
  const entries = jsonLines(downloadChunks(answer, world), info)
  // What fails before the first entry can still be told.
  const first = await entries.next()
  response.writeHead(200, { 'content-type': NDJSON_MEDIA_TYPE, 'cache-control': 'no-store' })
  if (first.done !== true) await writeChunk(response, lineOf(first.value))
  for await (const entry of entries) await writeChunk(response, lineOf(entry))
  response.end()
  return 'streamed'
}
