/**
 * Wall clocks of nodes. Linux has no namespace for the real-time clock, so a node's programs are started with libfaketime in front of the C library: it
 * answers for CLOCK_REALTIME alone, and reads from a file, within a second, how far the node's clock is off. Monotonic clocks and timers stay as they are,
 * as they do on a machine whose clock is set. Programs that do not go through the C library see the machine's own time.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { CodedError } from '@sandglass/contract/errors'
import { labPaths } from './paths.ts'

const LIBRARY = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`
const RELOAD_SECONDS = 1

/** In whole seconds, ahead or, negative, behind. */
export function setClock(home: string, node: string, seconds: number): void {
  if (!existsSync(LIBRARY)) throw new CodedError('invalid_request', `${LIBRARY} is missing. Type: apt-get install faketime`)
  writeFileSync(labPaths.clock(home, node), `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`)
}

/** In whole seconds ahead of this machine's. */
export function clockOf(home: string, node: string): number {
  try {
    return Number(readFileSync(labPaths.clock(home, node), 'utf8'))
  } catch {
    return 0
  }
}

/** Of a program that shall see the node's clock; nothing where the library is not installed. */
export function clockEnvironment(home: string, node: string): Readonly<Record<string, string>> {
  if (!existsSync(LIBRARY)) return {}
  if (!existsSync(labPaths.clock(home, node))) setClock(home, node, 0)
  return {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: labPaths.clock(home, node),
    FAKETIME_CACHE_DURATION: String(RELOAD_SECONDS),
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    // Times of files stay what the file system says.
    NO_FAKE_STAT: '1',
  }
}

/** libfaketime keeps a semaphore and a page for each process, and a process that is killed leaves them. */
export function forgetClock(pid: number): void {
  for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]) rmSync(`/dev/shm/${name}`, { force: true })
}

/** The same of every process that is gone, however it went. */
export function forgetDeadClocks(): void {
  for (const name of readdirSync('/dev/shm')) {
    const pid = /^(?:sem\.)?faketime_(?:shm|sem)_(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(`/dev/shm/${name}`, { force: true })
  }
}

/** `+3h`, `-90m`, `30s`, `0`. @returns seconds @throws CodedError `invalid_request` */
export function secondsOf(text: string): number {
  const match = /^([+-]?)(\d{1,9})([smhd]?)$/.exec(text)
  const [, sign, digits, unit = ''] = match ?? []
  if (digits === undefined) throw new CodedError('invalid_request', `A clock is set by so much as +3h, -90m or 0, not ${text}.`)
  const size = { '': 1, s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1
  return (sign === '-' ? -1 : 1) * Number(digits) * size
}
