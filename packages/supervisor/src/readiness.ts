/** Looks at whether a role is ready: one question, bounded in time. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const PROBE_MS = 1_000

export async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_MS), redirect: 'error' })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

/** The postmaster writes its state into the eighth line of postmaster.pid, as pg_ctl reads it. */
export async function postgresIsReady(data: string, pid: number): Promise<boolean> {
  try {
    const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}
