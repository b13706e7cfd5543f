/** Exec that is answered when the process has ended: one round trip to the guest, output collected up to a limit. */
import type { ExecResult, Process } from '@sandglass/contract'
import { lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { CollectedOutput } from './collected-output.ts'
import type { ExecPlan } from './exec-request.ts'
import { aboutProcess, outputEvents } from './guest-output.ts'
import { startExec } from './start-exec.ts'
import { StdinTask } from './stdin-task.ts'

export async function execJson(call: Call, plan: ExecPlan): Promise<Answer> {
  const answer = await startExec(call, plan)
  using stdout = new CollectedOutput(call.budget)
  using stderr = new CollectedOutput(call.budget)
  const stdin = new StdinTask(call, plan.stdin, () => answer.cancel())
  let hasGap = false
  let processId: string | undefined
  try {
    for await (const events of outputEvents(answer, { stdout: 0, stderr: 0 }, call.world)) {
      for (const event of events) {
        if (event.type === 'started') {
          processId = event.process.id
          stdin.start(processId)
        } else if (event.type === 'data') (event.stream === 'stdout' ? stdout : stderr).push(event.bytes)
        else if (event.type === 'gap') hasGap = true
        else if (event.type === 'exit') return { status: 200, json: resultOf(event.process, stdout, stderr, hasGap) }
      }
    }
    throw lostContact()
  } catch (error) {
    throw aboutProcess(stdin.failure ?? error, processId)
  }
}

function resultOf(process: Process, stdout: CollectedOutput, stderr: CollectedOutput, hasGap: boolean): ExecResult {
  const out = stdout.encoded()
  const err = stderr.encoded()
  return {
    process_id: process.id,
    exit_code: process.exit_code,
    signal: process.signal,
    stdout: out.text,
    stderr: err.text,
    encoding: { stdout: out.encoding, stderr: err.encoding },
    truncated: hasGap || stdout.isTruncated || stderr.isTruncated,
    timed_out: process.timed_out,
    output_open: process.output_open,
    duration_ms: process.duration_ms ?? 0,
  }
}
