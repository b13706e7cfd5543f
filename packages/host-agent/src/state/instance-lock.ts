/**
 * One agent per installation: an abstract unix socket, which the kernel releases when its holder dies, however it dies.
 * A lock file would have to be judged by pid, and pids return.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Clock } from '../clock.ts'

const RETRY_MS = 100

/** @throws Error when another agent of the installation still holds it after the time */
export async function lockInstance(installation: string, clock: Clock, patienceMs: number): Promise<AsyncDisposable> {
  const deadline = clock.nowMs() + patienceMs
  for (;;) {
    const server = createServer((socket) => socket.destroy())
    server.listen(`\0sandglass-host-${installation}`)
    try {
      await once(server, 'listening')
      server.unref()
      return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) }
    } catch (cause) {
      if (clock.nowMs() > deadline) throw new Error(`another host agent of installation ${installation} is running`, { cause })
      await clock.wait(RETRY_MS)
    }
  }
}
