/** Changes that are said in JSON: making directories, moving, copying, changing modes. */
import { ChangeModeSchema, CodedError, CopyFileSchema, FileInfoSchema, MakeDirectorySchema, MoveFileSchema, type Parser, parserOf } from '@sandglass/contract'
import type { Answer, Call } from '../http/call.ts'
import { checkPathBytes } from '../http/raw-query.ts'
import { readJson } from '../http/request-body.ts'

const info = parserOf(FileInfoSchema)
const directory = parserOf(MakeDirectorySchema)
const move = parserOf(MoveFileSchema)
const copy = parserOf(CopyFileSchema)
const mode = parserOf(ChangeModeSchema)

type Paths = Readonly<Record<string, unknown>>

/** A path is text, or base64 where it is not UTF-8; exactly one of the two. */
function checkPath(body: Paths, field: 'path' | 'from' | 'to'): void {
  const text = body[field]
  const encoded = body[`${field}_b64`]
  if ((text === undefined) === (encoded === undefined)) {
    throw new CodedError('invalid_request', `/${field} needs exactly one of ${field} and ${field}_b64.`, {
      errors: [{ path: `/${field}`, message: `needs exactly one of ${field} and ${field}_b64` }],
    })
  }
  checkPathBytes(typeof text === 'string' ? Buffer.from(text) : Buffer.from(typeof encoded === 'string' ? encoded : '', 'base64'))
}

async function change<T extends Paths>(
  call: Call,
  parser: Parser<T>,
  fields: readonly ('path' | 'from' | 'to')[],
  action: string,
  status: number,
): Promise<Answer> {
  const json = await readJson(call.request, parser)
  for (const field of fields) checkPath(json, field)
  const path = `/v1/files/${action}`
  return { status, json: await call.guest.json({ method: 'POST', path, json, isRepeatable: false, isWork: true, signal: call.session.signal }, info) }
}

export const makeDirectory = (call: Call) => change(call, directory, ['path'], 'mkdir', 201)
export const moveFile = (call: Call) => change(call, move, ['from', 'to'], 'move', 200)
export const copyFile = (call: Call) => change(call, copy, ['from', 'to'], 'copy', 200)
export const changeMode = (call: Call) => change(call, mode, ['path'], 'chmod', 200)
