/**
 * The disk of a host: a small file system of its own in a sparse file, so that it can be full without anybody else's being full. What fills it is reserved
 * and never written, so that a full disk costs nothing.
 */
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { run, tryRun } from './command.ts'
import { labPaths } from './paths.ts'
import type { LabDriver } from './plan.ts'

/** Above what a host agent leaves free (LIMITS.hostFreeDiskMbFloor). */
const DISK_MB: Readonly<Record<LabDriver, number>> = { fake: 4_096, gvisor: 16_384 }
/** Nothing here outlives the lab, so nothing is kept to survive a crash of the machine. */
const FORMAT = ['mkfs.ext4', '-q', '-F', '-m', '0', '-O', '^has_journal', '-E', 'lazy_itable_init=1,nodiscard']
const BLOCK = Buffer.alloc(4_096)

const mountsBelow = (folder: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .map((place) => place.replaceAll('\\040', ' '))
    .filter((place) => place === folder || place.startsWith(`${folder}/`))

export function mountDisk(home: string, node: string, driver: LabDriver): void {
  const place = labPaths.disk(home, node)
  mkdirSync(place, { recursive: true })
  if (mountsBelow(place).includes(place)) return
  const image = labPaths.diskImage(home, node)
  run(['truncate', `--size=${DISK_MB[driver]}M`, image])
  run([...FORMAT, image])
  run(['mount', '-t', 'ext4', '-o', 'loop,nosuid,nodev', image, place])
}

/** Everything that is mounted below the lab's home, the last mounted first. */
export function unmountAll(home: string): void {
  for (const place of mountsBelow(home).toReversed()) tryRun(['umount', '--lazy', place])
}

/** Until there is no room for another byte. */
export function fillDisk(home: string, node: string): void {
  const path = labPaths.ballast(home, node)
  const { bavail, bsize } = statfsSync(labPaths.disk(home, node))
  if (bavail > 1) tryRun(['fallocate', '--length', String((bavail - 1) * bsize), path])
  const file = openSync(path, 'a', 0o600)
  try {
    for (;;) writeSync(file, BLOCK)
  } catch {
    // Full, as wanted.
  } finally {
    closeSync(file)
  }
}

export function isFull(home: string, node: string): boolean {
  try {
    return statfsSync(labPaths.disk(home, node)).bavail === 0
  } catch {
    return false
  }
}

export const freeDisk = (home: string, node: string): void => rmSync(labPaths.ballast(home, node), { force: true })
