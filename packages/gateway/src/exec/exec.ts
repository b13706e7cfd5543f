/** POST …/exec in its three forms. */
import type { Answer, Call } from '../http/call.ts'
import { EVENT_STREAM_MEDIA_TYPE } from '../http/event-stream.ts'
import { readJson } from '../http/request-body.ts'
import { execBackground } from './exec-background.ts'
import { execEvents } from './exec-events.ts'
import { execJson } from './exec-json.ts'
import { execParser, planExec } from './exec-request.ts'

export async function exec(call: Call): Promise<Answer> {
  const plan = planExec(await readJson(call.request, execParser), call.world)
  if (plan.background) return execBackground(call, plan)
  return wantsEvents(call) ? execEvents(call, plan) : execJson(call, plan)
}

function wantsEvents(call: Call): boolean {
  return (call.request.headers.accept ?? '').split(',').some((type) => type.split(';')[0]?.trim().toLowerCase() === EVENT_STREAM_MEDIA_TYPE)
}
