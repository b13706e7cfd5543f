/** What the control plane takes from outside: randomness, time that only moves forward, the log, traces, and faults. */
import { randomBytes } from 'node:crypto'
import type { RandomBytes } from '@sandglass/contract'
import { noTracing, type Tracing } from '@sandglass/telemetry'
import { type Faults, noFaults } from './faults/crash-point.ts'

export type World = {
  readonly random: RandomBytes
  /** Milliseconds of a clock that never jumps; differences only. Every time that decides anything is the database's. */
  readonly monotonicMs: () => number
  /** Unix time in milliseconds, for what is only shown. */
  readonly wallMs: () => number
  /** Where log lines go. */
  readonly logStream: { write(line: string): void }
  readonly tracing: Tracing
  readonly faults: Faults
  /**
   * The way of every hint from where it arises to who acts on it: wake-ups of this process and of others, and starts that are handed to an open watch.
   * Whatever becomes of hints changes when something is done, never what; tests lose them, double them and delay them.
   */
  readonly hint: (deliver: () => void, what: 'wake-up' | 'start') => void
}

export const realWorld: World = {
  random: randomBytes,
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  logStream: process.stdout,
  tracing: noTracing,
  faults: noFaults,
  hint: (deliver) => deliver(),
}

/** Picks an index below `among`, which is small: a byte of chance is enough. */
export const pickOf =
  ({ random }: Pick<World, 'random'>) =>
  (among: number): number =>
    (random(1)[0] ?? 0) % among
