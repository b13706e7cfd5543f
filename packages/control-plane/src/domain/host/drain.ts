/**
 * Drains as pure functions: which of what is on the host is retired now, and what the drain waits for.
 *
 * What is not up yet starts elsewhere, and what may be started anew moves, both at once: nobody loses anything by waiting less. What nobody would start
 * again may finish, and is ended `LIMITS.drainEndSeconds` before the deadline, so that the host has time to prove it. Retiring releases nothing: amounts
 * go back, and the drain is over, by the host's own proofs (guard: release.proof).
 */
import { type Drain, type DrainWait, LIMITS, type RestartPolicy, type SandboxStatus } from '@sandglass/contract'
import { wantsRestart } from '../sandbox/end-plan.ts'

/** One that is on a host that is drained, in the generation that is wanted there. */
export type Draining = {
  readonly hostId: string
  readonly sandboxId: string
  readonly generation: number
  readonly observed: SandboxStatus
  readonly policy: RestartPolicy
  /** Until what still runs there is ended. */
  readonly endsInMs: number
}

export type DrainPlan = {
  readonly retire: readonly Draining[]
  /** Until the next one is due; undefined: none will be by time alone. */
  readonly nextInMs: number | undefined
}

export function planDrain(draining: readonly Draining[]): DrainPlan {
  const finishing = draining.filter(mayFinish)
  return {
    retire: draining.filter((one) => RETIRED_FROM.includes(one.observed) && !mayFinish(one)),
    nextInMs: finishing.length === 0 ? undefined : Math.min(...finishing.map((one) => one.endsInMs)),
  }
}

/** From any other state it is on its way out already. */
const RETIRED_FROM: readonly SandboxStatus[] = ['assigned', 'starting', 'ready']

const mayFinish = ({ observed, policy, endsInMs }: Draining): boolean => observed === 'ready' && !wantsRestart(policy, 'host_drained') && endsInMs > 0

export type DrainFacts = {
  readonly startedAt: Date
  readonly deadlineAt: Date
  /** The deadline has passed. */
  readonly over: boolean
  /** The host sent no renewal for a lease. */
  readonly lost: boolean
  /** Live assignments. */
  readonly sandboxes: number
  /** Of those, ready and not ordered to end. */
  readonly mayFinish: number
  /** Units that its pools still hold. */
  readonly poolMembers: number
}

export function drainView(facts: DrainFacts): Drain {
  const { startedAt, deadlineAt, over, sandboxes: left, poolMembers } = facts
  const endsAt = new Date(Math.max(startedAt.getTime(), deadlineAt.getTime() - LIMITS.drainEndSeconds * 1_000))
  return {
    state: left === 0 && poolMembers === 0 ? 'drained' : over ? 'overdue' : 'draining',
    started_at: startedAt.toISOString(),
    deadline_at: deadlineAt.toISOString(),
    ends_at: endsAt.toISOString(),
    left,
    waits_for: waitsOf(facts, endsAt),
  }
}

function waitsOf({ lost, sandboxes, mayFinish: finishing, poolMembers }: DrainFacts, endsAt: Date): Drain['waits_for'] {
  const ending = sandboxes - finishing
  const wait = (reason: DrainWait, count: number, detail: string): Drain['waits_for'] => (count === 0 ? [] : [{ reason, count, detail }])
  const mayStill = wait('may_finish', finishing, `Running; what has not finished by ${endsAt.toISOString()} is ended then.`)
  if (lost) {
    const detail = 'The host sends no renewals: what is there is released when it is fenced, or when it is back and proves the end.'
    return [...mayStill, ...wait('host_lost', ending + poolMembers, detail)]
  }
  return [
    ...mayStill,
    ...wait('ending', ending, 'Ordered to end, and the host has not proved it yet. If this stays, the log of its host agent says what does not end.'),
    ...wait('pool_members', poolMembers, 'Idle members of warm pools, which the host is ending.'),
  ]
}
