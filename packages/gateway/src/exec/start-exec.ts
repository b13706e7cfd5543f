/** Starts a process and follows it in the same request: the answer's body is the frame stream. */
import type { Call } from '../http/call.ts'
import type { ExecPlan } from './exec-request.ts'

export function startExec(call: Call, plan: ExecPlan) {
  const query = plan.killOnDisconnect ? '?kill_on_disconnect=1' : ''
  // A repeat after a lost answer finds the process by its key; not so when the loss itself has killed it.
  const isRepeatable = !plan.killOnDisconnect
  return call.guest.send({ method: 'POST', path: `/v1/exec${query}`, json: plan.start, isRepeatable, signal: call.session.signal })
}
