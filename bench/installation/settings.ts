/**
 * The installations that rows are measured on. Each is a real one with a home and ports of its own; rows of one setting share it.
 *
 * Capacity is raised above the machine's: a burst is about starts, and an idle sandbox uses a fraction of what it may. The ceiling of a pool is
 * its floor, so that a row knows how many members there are.
 */
import type { Resources } from '@sandglass/contract/sandbox'
import { DEFAULT_SIZE, SMALL } from './sizes.ts'

export type Setting = 'no pool' | 'pool of 20' | 'pool of 100'

type Pool = {
  readonly size: Resources
  readonly members: number
  /** Members of all pools of the setting. */
  readonly allMembers: number
}

/** In the order in which they are measured. */
export const SETTINGS: readonly Setting[] = ['no pool', 'pool of 20', 'pool of 100']

/** The second pool of that setting is the one that every installation has. */
export const POOLS: Readonly<Record<Setting, Pool>> = {
  'no pool': { size: DEFAULT_SIZE, members: 0, allMembers: 0 },
  'pool of 20': { size: DEFAULT_SIZE, members: 20, allMembers: 20 },
  'pool of 100': { size: SMALL, members: 100, allMembers: 101 },
}

const CAPACITY = { SANDGLASS_CAPACITY_VCPU: '400', SANDGLASS_CAPACITY_MEMORY_MB: '400000', SANDGLASS_CAPACITY_DISK_GB: '4000' }

const POOL_ENVIRONMENT: Readonly<Record<Setting, Readonly<Record<string, string>>>> = {
  'no pool': { SANDGLASS_POOL_FLOOR: '0' },
  'pool of 20': { SANDGLASS_POOL_FLOOR: '20', SANDGLASS_POOL_CEILING: '20' },
  'pool of 100': {
    SANDGLASS_POOL_FLOOR: '1',
    SANDGLASS_POOL_FLOOR_SPECS: `base,${SMALL.vcpu},${SMALL.memory_mb},${SMALL.disk_gb},100`,
    SANDGLASS_POOL_CEILING: '100',
  },
}

export function environmentOf(setting: Setting): Readonly<Record<string, string>> {
  return { ...CAPACITY, ...POOL_ENVIRONMENT[setting] }
}
