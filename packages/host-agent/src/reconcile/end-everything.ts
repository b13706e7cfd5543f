/** guard: register.empty. Ends every runtime of this host, whoever's it is, and every pool member. */
import { LIMITS } from '@sandglass/contract'
import type { Pools } from '../pools/pools.ts'
import type { SandboxWorkers } from './sandbox-workers.ts'

const WHY = { reason: 'recovered', detail: 'The host holds another epoch now.' } as const

/** @throws Error when some do not end in time; their ends are tried further */
export async function endEverything(workers: SandboxWorkers, pools: Pick<Pools, 'endAll'>): Promise<void> {
  const patience = AbortSignal.timeout(LIMITS.hostDestroyMs * 2)
  await Promise.all([pools.endAll(patience), ...workers.all().map((worker) => worker.endBecause(WHY, patience))])
  if (workers.occupied > 0) throw new Error(`${workers.occupied} runtimes do not end`)
}
