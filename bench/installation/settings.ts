/**
 * The installations that rows are measured on. Each is a real one with a home and ports of its own; rows of one setting share it.
 *
 * Where many sandboxes run, capacity is raised above the machine's: a burst is about starts, and an idle sandbox uses a fraction of what it may.
 * The ceiling of a pool is its floor, so that a row knows how many members there are.
 */

export type Setting = 'as installed' | 'no pool' | 'pool of 20' | 'pool of 100'

/** In the order in which they are measured. */
export const SETTINGS: readonly Setting[] = ['as installed', 'no pool', 'pool of 20', 'pool of 100']

/** Members that a setting keeps ready, all of the default size. */
export const MEMBERS: Readonly<Record<Setting, number>> = { 'as installed': 2, 'no pool': 0, 'pool of 20': 20, 'pool of 100': 100 }

const CAPACITY = { SANDGLASS_CAPACITY_VCPU: '400', SANDGLASS_CAPACITY_MEMORY_MB: '400000', SANDGLASS_CAPACITY_DISK_GB: '4000' }

const poolOf = (members: number): Readonly<Record<string, string>> => ({
  SANDGLASS_POOL_FLOOR: String(members),
  SANDGLASS_POOL_CEILING: String(Math.max(1, members)),
})

export function environmentOf(setting: Setting): Readonly<Record<string, string>> {
  return setting === 'as installed' ? {} : { ...CAPACITY, ...poolOf(MEMBERS[setting]) }
}
