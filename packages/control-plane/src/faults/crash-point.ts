/**
 * Named points at which a test lets the control plane die, stall or fail. In production reaching one does nothing.
 *
 * `SANDGLASS_CRASH_AT=<point>[:n]` makes the process kill itself with SIGKILL the n-th time (default: the first) that it reaches a point.
 */
import { dieAt } from '@sandglass/contract'

/** Every point, in the order in which a sandbox's life passes them. */
export const CRASH_POINTS = [
  /** The create's rows are written and not committed. */
  'create.open',
  /** The create is committed; nobody was told, nothing was answered. */
  'create.committed',
  /** Placement has read its snapshot and chosen. */
  'place.planned',
  /** An assignment is committed; its host was not told. */
  'place.committed',
  /** A start order was written to the host's watch. */
  'start.sent',
  /** A ready report is applied and not committed. */
  'ready.open',
  /** A ready report is committed; the host was not answered, waiters were not woken. */
  'ready.committed',
  /** A stop's rows are written and not committed. */
  'stop.open',
  /** A stop is committed; nobody was told, nothing was answered. */
  'stop.committed',
  /** A start's rows are written and not committed. */
  'start.open',
  /** A start is committed; nobody was told, nothing was answered. */
  'start.committed',
  /** A delete's rows are written and not committed. */
  'delete.open',
  /** A delete is committed; nobody was told, nothing was answered. */
  'delete.committed',
  /** An end order was written to the host's watch. */
  'end.sent',
  /** An ended report is applied and not committed. */
  'ended.open',
  /** A release is committed; the host was not answered. */
  'ended.committed',
  /** An epoch was given; the host was not answered and what it held before is not released. */
  'register.committed',
  /** A renewal is committed and not answered. */
  'renew.committed',
  /** Hosts were seen that renewed nothing for lease and grace; none of them is fenced. */
  'fence.planned',
  /** A host is fenced; nothing that it held is released. */
  'fence.committed',
  /** Wake-ups were taken from the outbox and sent. */
  'outbox.relayed',
] as const

export type CrashPoint = (typeof CRASH_POINTS)[number]

export type Faults = {
  /** May throw, stall or end the process. */
  reach(point: CrashPoint): Promise<void> | void
}

export const noFaults: Faults = { reach: () => undefined }

/** @throws RangeError when the text names no point */
export function crashAt(text: string): Faults {
  const reach = dieAt(text, CRASH_POINTS, () => {
    process.kill(process.pid, 'SIGKILL')
    // The signal is on its way; nothing of ours may run until it arrives.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
  return { reach }
}
