/** The machine's memory, and what is left of it and of a disk, MiB. Passed in, so that tests can own how much there is. */
import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

const MIB = 1024 * 1024

export type Room = {
  /** On the file system of the path. */
  freeDiskMb(path: string): Promise<number>
  freeMemoryMb(): number
  totalMemoryMb(): number
}

function meminfo(field: string): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/meminfo', 'utf8'))
  return Math.floor(Number(line?.[1] ?? 0) / 1024)
}

export const machineRoom: Room = {
  async freeDiskMb(path) {
    const { bavail, bsize } = await statfs(path)
    return Math.floor((bavail * bsize) / MIB)
  },
  freeMemoryMb: () => meminfo('MemAvailable'),
  totalMemoryMb: () => meminfo('MemTotal'),
}
