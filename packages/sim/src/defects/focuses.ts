/** What runs are made of that look for defects of one kind: chance alone would meet some of them seldom. */
import type { Focus } from '../faults/mix.ts'

/** Reports and requests come late and twice. */
export const LATE = { hosts: 1, paceMs: 300, network: { doubled: 0.5, slow: 0.3, slowMs: 15_000 } } as const satisfies Focus

/** Orders come again, long after they were told, on hosts that forget nothing by a restart. */
export const OLD = {
  durationMs: 120_000,
  hosts: 1,
  sandboxes: 6,
  paceMs: 2_000,
  shortLives: false,
  everyMs: { oldOrder: 700, reboot: 0, agentCrash: 0, agentPause: 0, partition: 0, databaseOutage: 0 },
} as const satisfies Focus

/** Pools are claimed from all the time, on one host. */
export const BUSY_POOLS = { poolFloor: 2, hosts: 1, room: [4], sandboxes: 6, paceMs: 300 } as const satisfies Focus
