/** The machine that is measured on, and whether somebody else is using it. */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

export type MachineFacts = {
  readonly cpu: string
  readonly cores: number
  readonly memory_gb: number
  readonly kernel: string
  /** What sandboxes and raw peers run on. */
  readonly runtime: string
}

/** Share of all cores above which the machine counts as busy before anything of ours runs. */
export const BUSY_SHARE = 0.2
/** What an installation does by itself when something has ended is over long before. */
const REST_MS = 60_000
const REST_LOOK_MS = 500
const BYTES_PER_GB = 1024 ** 3

export function machineFacts(runtime: string): MachineFacts {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory_gb: Math.round(totalmem() / BYTES_PER_GB),
    kernel: release(),
    runtime,
  }
}

/** No number means anything without it. */
export const textOfMachine = ({ cpu, cores, memory_gb, kernel, runtime }: MachineFacts): string =>
  `${cores} cores (${cpu}), ${memory_gb} GiB, kernel ${kernel}, ${runtime}`

export type CpuTimes = { readonly idle: number; readonly total: number }

/** Of the first line of /proc/stat. Pure. */
export function cpuTimes(stat: string): CpuTimes {
  const ticks = (/^cpu +(.*)$/m.exec(stat)?.[1] ?? '').split(' ').map(Number)
  // Guest time is part of user time already.
  const total = ticks.slice(0, 8).reduce((sum, value) => sum + value, 0)
  return { idle: (ticks[3] ?? 0) + (ticks[4] ?? 0), total }
}

export function busyBetween(before: CpuTimes, after: CpuTimes): number {
  const total = after.total - before.total
  return total <= 0 ? 0 : 1 - (after.idle - before.idle) / total
}

/** Share of all cores that was in use during the time. */
export async function busyShare(ms: number): Promise<number> {
  const before = cpuTimes(readFileSync('/proc/stat', 'utf8'))
  await delay(ms)
  return busyBetween(before, cpuTimes(readFileSync('/proc/stat', 'utf8')))
}

export class MachineBusy extends Error {
  override readonly name = 'MachineBusy'
}

/** Waits until nobody uses the machine. @throws MachineBusy when that does not come, and the signal's reason */
export async function machineAtRest(
  signal: AbortSignal,
  limitMs: number = REST_MS,
  look: () => Promise<number> = () => busyShare(REST_LOOK_MS),
): Promise<void> {
  const deadline = performance.now() + limitMs
  for (;;) {
    signal.throwIfAborted()
    const busy = await look()
    if (busy <= BUSY_SHARE) return
    if (performance.now() > deadline)
      throw new MachineBusy(`after ${limitMs} ms still ${Math.round(100 * busy)} % of the CPU are in use, by something else than what is measured`)
  }
}

export const load1 = (): number => loadavg()[0] ?? 0
