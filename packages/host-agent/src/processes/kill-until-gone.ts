/** Kills what a search finds until it finds nothing: a process that forks while it is killed is found by the next look. */
import type { Clock } from '../clock.ts'
import { sendSignal } from './process-table.ts'

const LOOK_AGAIN_MS = 5

/** @param find pids of living processes @throws Error when some are left after the time */
export async function killUntilGone(find: () => readonly number[], clock: Clock, timeoutMs: number): Promise<void> {
  const deadline = clock.nowMs() + timeoutMs
  for (let pids = find(); pids.length > 0; pids = find()) {
    for (const pid of pids) sendSignal(pid, 'SIGKILL')
    if (clock.nowMs() > deadline) throw new Error(`processes do not die: ${pids.slice(0, 8).join(' ')}`)
    await clock.wait(LOOK_AGAIN_MS)
  }
}
