/**
 * Named moments at which the agent can be made to die, for the crash tests.
 *
 * SANDGLASS_CRASH_AT=<point>[:n] kills the agent with SIGKILL when it reaches the point for the n-th time (default the first). In
 * production nothing is armed and `reach` does nothing.
 */
import { dieAt } from '@sandglass/contract'

export const CRASH_POINTS = [
  /** The ticket was found acceptable, nothing is on disk. */
  'start.decided',
  /** High-water mark and intent are durable, nothing else exists. */
  'start.recorded',
  'start.directories',
  'start.network',
  'start.bundle',
  /** The runtime's launcher runs, and nobody has waited for it. */
  'start.launching',
  'start.launched',
  'start.guest',
  'start.identity',
  'start.limits',
  /** `running` is durable, `ready` was not reported. */
  'start.ready_recorded',
  /** The control plane has answered `ready`. */
  'start.reported',
  /** An end is durable, nothing was taken down. */
  'stop.recorded',
  'stop.runtime',
  'stop.cgroup',
  'stop.network',
  'stop.directories',
  /** `gone` is durable, `ended` was not reported. */
  'stop.gone_recorded',
  'stop.reported',
  /** A member's guest has dialled, nobody knows of it but this process. */
  'pool.booted',
  /** A position that was ordered is durable, nothing of it was told. */
  'pool.stored',
  /** The control plane has answered the acknowledgement of a position. */
  'pool.reported',
  /** A claim has a member, nothing is on disk. */
  'pool.picked',
  /** Records were read and compared with the machine, nothing was done. */
  'recover.planned',
  'adopt.channel',
  'host.asking',
  'host.registered',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

export type Faults = { reach(point: CrashPoint): void }

export const noFaults: Faults = { reach: () => {} }

/** @throws RangeError when the text names no point */
export function crashFaults(text: string | undefined, die: () => void): Faults {
  return text === undefined || text === '' ? noFaults : { reach: dieAt(text, CRASH_POINTS, die) }
}
