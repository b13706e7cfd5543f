/** Exec that is answered as soon as the process has started. Input that came with the request is fed after the answer. */
import { ProcessSchema, parserOf } from '@sandglass/contract'
import type { Answer, Call } from '../http/call.ts'
import { reasonOf } from '../log.ts'
import type { ExecPlan } from './exec-request.ts'
import { feedStdin } from './stdin-feed.ts'

const process = parserOf(ProcessSchema)

export async function execBackground(call: Call, plan: ExecPlan): Promise<Answer> {
  const { guest, session, world } = call
  const started = await guest.json({ method: 'POST', path: '/v1/processes', json: plan.start, isRepeatable: true, signal: session.signal }, process)
  if (plan.stdin !== undefined) {
    const fed = feedStdin(guest, started.id, plan.stdin, session.signal).catch((error: unknown) => {
      world.log('warn', 'stdin_not_fed', { request_id: call.requestId, process: started.id, reason: reasonOf(error) })
    })
    call.keepUntil(fed)
  }
  return { status: 201, json: started }
}
