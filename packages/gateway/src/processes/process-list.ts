/** Processes of a sandbox: running ones, and those whose result is still kept. */
import { LIMITS, ProcessListSchema, ProcessSchema, parserOf } from '@sandglass/contract'
import type { Answer, Call } from '../http/call.ts'

const list = parserOf(ProcessListSchema)
const one = parserOf(ProcessSchema)

export async function listProcesses({ guest, session }: Call): Promise<Answer> {
  const json = await guest.json({ method: 'GET', path: '/v1/processes', isRepeatable: true, signal: session.signal }, list, LIMITS.guestListBytes)
  return { status: 200, json }
}

export async function getProcess({ guest, session, process }: Call): Promise<Answer> {
  return { status: 200, json: await guest.json({ method: 'GET', path: `/v1/processes/${process}`, isRepeatable: true, signal: session.signal }, one) }
}
