/** Exec as server-sent events. Its last event is `exit` or `error`; a stream that ends without one is never a success. */
import { problemOf } from '@sandglass/contract'
import { lostContact } from '../hosts/host-answer.ts'
import type { Answer, Call } from '../http/call.ts'
import { ClientGone, writeChunk } from '../http/client-stream.ts'
import { beginEvents, writeEvent } from '../http/event-stream.ts'
import { codedError } from '../problems/send-problem.ts'
import type { ExecPlan } from './exec-request.ts'
import { aboutProcess, type OutputEvent, outputEvents, type StreamName } from './guest-output.ts'
import { startExec } from './start-exec.ts'
import { StdinTask } from './stdin-task.ts'

export async function execEvents(call: Call, plan: ExecPlan): Promise<Answer> {
  const { response, session } = call
  session.becomeStream()
  const answer = await startExec(call, plan)
  const stdin = new StdinTask(call, plan.stdin, () => answer.cancel())
  let processId: string | undefined
  try {
    for await (const events of outputEvents(answer, { stdout: 0, stderr: 0 }, call.world)) {
      for (const event of events) {
        if (event.type === 'started') {
          processId = event.process.id
          beginEvents(response)
          stdin.start(processId)
        }
        await writeOutputEvent(call, event)
        if (event.type === 'exit') return endEvents(call)
      }
    }
    throw lostContact()
  } catch (error) {
    if (error instanceof ClientGone || !response.headersSent) throw error
    const told = codedError(aboutProcess(stdin.failure ?? error, processId))
    await writeEvent(response, 'error', problemOf(told, { requestId: call.requestId }))
    return endEvents(call)
  }
}

function endEvents(call: Call): Answer {
  call.response.end()
  return 'streamed'
}

/** Written by hand: base64 needs no escaping, and looking for what does would cost more than the rest. */
function dataEvent(stream: StreamName, offset: number, bytes: Uint8Array): string {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return `event: ${stream}\ndata: {"offset":${offset},"data":"${base64}"}\n\n`
}

function writeOutputEvent(call: Call, event: OutputEvent): Promise<void> {
  switch (event.type) {
    case 'started':
      return writeEvent(call.response, 'start', { process: event.process })
    case 'data':
      return writeChunk(call.response, dataEvent(event.stream, event.offset, event.bytes))
    case 'gap':
      return writeEvent(call.response, 'gap', { stream: event.stream, from: event.from, to: event.to })
    case 'heartbeat':
      return writeEvent(call.response, 'heartbeat', {})
    case 'exit':
      return writeEvent(call.response, 'exit', { process: event.process })
    case 'end':
      throw lostContact()
  }
}
