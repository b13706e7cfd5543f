/** Signals, terminal sizes and standard input of a running process. */
import { ProcessSchema, parserOf, SignalProcessSchema, StdinAcceptedSchema, TerminalSizeSchema, WRITER_HEADER } from '@sandglass/contract'
import type { Answer, Call } from '../http/call.ts'
import { guestQuery } from '../http/raw-query.ts'
import { readJson } from '../http/request-body.ts'
import { uploadFrom } from '../http/upload.ts'

const process = parserOf(ProcessSchema)
const signalBody = parserOf(SignalProcessSchema)
const sizeBody = parserOf(TerminalSizeSchema)
const accepted = parserOf(StdinAcceptedSchema)

export async function signalProcess(call: Call): Promise<Answer> {
  const json = await readJson(call.request, signalBody)
  return { status: 200, json: await postControl(call, 'signal', json) }
}

export async function resizeProcess(call: Call): Promise<Answer> {
  const json = await readJson(call.request, sizeBody)
  return { status: 200, json: await postControl(call, 'resize', json) }
}

function postControl({ guest, session, process: name }: Call, action: 'signal' | 'resize', json: unknown) {
  // A signal that arrived twice could be counted by its receiver; a size could not.
  const isRepeatable = action === 'resize'
  return guest.json({ method: 'POST', path: `/v1/processes/${name}/${action}`, json, isRepeatable, signal: session.signal }, process)
}

export async function writeStdin({ guest, session, request, query, process: name }: Call): Promise<Answer> {
  const path = `/v1/processes/${name}/stdin${guestQuery({ offset: query['offset'], close: query['close'] })}`
  const headers = query['writer'] === undefined ? {} : { [WRITER_HEADER]: query['writer'] }
  const json = await guest.json(
    { method: 'POST', path, headers, body: uploadFrom(request), isRepeatable: false, isLong: true, signal: session.signal },
    accepted,
  )
  return { status: 200, json }
}
