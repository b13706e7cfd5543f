/** What the supervisor has to know about a role. Tests hand in small scripts; the real ones are in roles.ts. */

export type Launch = {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Where it answers HTTP, if it does. */
  readonly url?: string | undefined
  /** One look, bounded in time; asked again until it holds. */
  readonly isReady: (pid: number) => Promise<boolean>
}

export type RoleSpec = {
  readonly name: string
  /** Called before each start, so that a port or a crash point can belong to one start only. The signal fires when nobody wants it any more. */
  readonly launch: (signal: AbortSignal) => Promise<Launch>
  readonly stopSignal: NodeJS.Signals
}

export type RoleTiming = {
  /** Pause before the first restart; it doubles with each crash that follows soon. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** Having run this long, a role starts again with the first pause. */
  readonly stableMs: number
  readonly readyPollMs: number
  /** Between two looks at a role that is ready. */
  readonly watchMs: number
  /** Until SIGKILL. */
  readonly stopMs: number
  /** Crashes before the first readiness that make a start fail. */
  readonly startCrashes: number
  readonly startMs: number
}

export const ROLE_TIMING: RoleTiming = {
  backoffMs: 100,
  backoffMaxMs: 5_000,
  stableMs: 3_000,
  readyPollMs: 40,
  watchMs: 3_000,
  stopMs: 15_000,
  startCrashes: 4,
  startMs: 120_000,
}
