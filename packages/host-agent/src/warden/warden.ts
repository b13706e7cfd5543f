/**
 * The warden as the agent sees it: a process beside this one that freezes everything of sandboxes when the lease of this host has run out, whatever
 * becomes of the agent (warden.apart). `native/warden` is its other side.
 */

/** Nanoseconds of the warden's clock, which goes on while the machine sleeps. Node.js cannot read that clock, so whoever needs a moment asks for one. */
export type Moment = bigint

export type Command = readonly [string, ...string[]]

/** `run`, the default: its launcher waits for it, and ends with it. `become`: it is what was spawned, which takes some milliseconds more. */
export type WayIn = 'run' | 'become'

/** Through which every launch goes. */
export type LaunchGate = {
  /** guard: launch.gate. The command that runs the given one inside of the group that is frozen. @throws Error when nothing may be launched now */
  through(command: Command, how?: WayIn): Command
}

export type Warden = LaunchGate & {
  /** It answers, so that sandboxes here stop by themselves. */
  readonly alive: boolean
  /** Everything of sandboxes stands still. */
  readonly frozen: boolean
  /** How long sandboxes may still run; 0 and below: they stand still, or are about to. */
  leftMs(): number
  /** Taken before a renewal is sent. Undefined when the warden does not answer: then that renewal prolongs nothing. */
  moment(): Promise<Moment | undefined>
  /** guard: renew.sent. A renewal that was sent at that moment has been answered. */
  renewed(sent: Moment | undefined): Promise<void>
  /** Sees to it that one lives, until the signal fires. */
  watch(signal: AbortSignal): Promise<void>
  /** Lets go of it; it lives on. */
  close(): void
}

/** Of a canary, which is nobody's: it proves a driver before this host has any lease. */
export const openGate: LaunchGate = { through: (command) => command }

/** Where nothing is launched. */
export const closedGate: LaunchGate = {
  through() {
    throw new Error('nothing is launched here')
  },
}
