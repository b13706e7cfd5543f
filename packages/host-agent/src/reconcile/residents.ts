/** What should be on this machine: what records of sandboxes name, and what pools have. */
import type { Residents } from '../census/sweep-leftovers.ts'
import type { Pools } from '../pools/pools.ts'
import type { SandboxWorkers } from './sandbox-workers.ts'

export function residents(workers: SandboxWorkers, pools: Pick<Pools, 'names'>): Residents {
  return {
    // A pick moves a name from the pool to a record, so it is looked for in that order.
    desired: () => {
      const members = pools.names()
      return new Set([...members, ...workers.desired()])
    },
    // A dead member is found by the exit watch.
    running: () => workers.running(),
  }
}
