/**
 * Step of a pool member alone: its guest runs one short program and forgets it, so that what a first command needs (the shell, its libraries, the
 * guest agent's own pages, the way to it) has been read before anybody waits, and the files that a claim writes its name into have been copied from
 * the template. Nothing of it stays to be seen: the process has ended, its record is gone, nothing was written, and it belonged to no sandbox.
 *
 * It only spares time. A template without a shell, or a guest that answers late, is as good a member, so a failure is noted and changes nothing.
 */
import type { StartProcess } from '@sandglass/contract'
import type { GuestChannel } from '../guest/guest-channel.ts'
import { type Log, reasonOf } from '../log.ts'

const KEY = 'warm-up'
const WITHIN_MS = 2_000
/** A file that is opened to be written to is copied at once. The program at the end is another than the shell, so that both have run once. */
const COMMAND = 'for file in /etc/hostname /etc/hosts; do test ! -f $file || : >> $file; done; cat /dev/null; :'
const REQUEST: StartProcess = { argv: ['/bin/sh', '-c', COMMAND], cwd: '/', user: 'root', timeout_ms: WITHIN_MS, kill_grace_ms: 0, key: KEY }

/** Never rejects. @param signal the member is not needed any more */
export async function warmUp(channel: Pick<GuestChannel, 'session'>, log: Log, signal: AbortSignal): Promise<void> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)])
  try {
    const session = channel.session()
    // The answer ends with the process.
    await session.exchange('POST', '/v1/exec', REQUEST, within)
    await session.exchange('DELETE', `/v1/processes/key:${KEY}`, undefined, within)
  } catch (error) {
    if (!signal.aborted) log.warn('pool.not_warmed_up', { reason: reasonOf(error) })
  }
}
