/** What a start, a stop and a loss mean in each state, as decisions without a database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS, RESTART_POLICIES, type RestartPolicy, SANDBOX_STATUSES } from '@sandglass/contract'
import { type LossReason, planLoss } from '../src/domain/sandbox/end-plan.ts'
import { MOVES, mayMove, STATES } from '../src/domain/sandbox/transitions.ts'
import { planStart, planStop, type WantedPlan } from '../src/domain/sandbox/wanted-plan.ts'

const CALLS: readonly { call: string; wanted: 'running' | 'stopped'; plan: (status: (typeof SANDBOX_STATUSES)[number]) => WantedPlan }[] = [
  { call: 'start', wanted: 'running', plan: planStart },
  { call: 'stop while something is live', wanted: 'stopped', plan: (status) => planStop(status, true) },
  { call: 'stop while nothing is', wanted: 'stopped', plan: (status) => planStop(status, false) },
]

for (const { call, wanted, plan } of CALLS) {
  test(`${call}: every state has one answer, a move of the table exactly where something else is wanted`, () => {
    for (const status of SANDBOX_STATUSES) {
      const [desired] = STATES[status].desired
      const decided = plan(status)
      if (desired === 'deleted') assert.deepEqual(decided, { step: 'refuse' }, status)
      else assert.equal(decided.step === 'move', desired !== wanted, status)
      if (decided.step !== 'move') continue
      assert.ok(mayMove(decided.move, status), `${decided.move} from ${status}`)
      assert.equal(MOVES[decided.move].desired, wanted, status)
      assert.equal(MOVES[decided.move].generation, 'next', status)
      // Asked again, nothing more is done.
      assert.ok(['wait', 'done'].includes(plan(MOVES[decided.move].to).step), status)
    }
  })
}

test('a stop brings one to rest that is stopping though nothing is live', () => {
  assert.deepEqual(planStop('stopping', false), { step: 'rest' })
  assert.ok(mayMove('rest', 'stopping'))
})

const LOSSES: Readonly<Record<'host' | 'guest', readonly LossReason[]>> = { host: ['recovered', 'host_restarted', 'host_lost'], guest: ['runtime_exited'] }
const pauses = { retryBaseMs: 1, restartBaseMs: 1_000 }
const ready = { observed: 'ready', startAttempts: 1, restarts: 0 } as const

test('the policy says after which loss a ready sandbox is placed again', () => {
  const restarted: Readonly<Record<RestartPolicy, readonly LossReason[]>> = {
    never: [],
    on_host_loss: LOSSES.host,
    always: [...LOSSES.host, ...LOSSES.guest],
  }
  for (const restartPolicy of RESTART_POLICIES) {
    for (const reason of [...LOSSES.host, ...LOSSES.guest]) {
      const expected = restarted[restartPolicy].includes(reason) ? 'restart' : 'fail'
      assert.equal(planLoss({ ...ready, restartPolicy }, { reason, detail: null }, pauses).move, expected, `${restartPolicy} ${reason}`)
    }
  }
})

test('a restart whose starts fail is one of its row: the next pause is longer, and the row has one end', () => {
  const loss = { reason: 'start_failed', detail: null } as const
  const plan = (restarts: number, observed: 'assigned' | 'starting' = 'starting', startAttempts: number = LIMITS.startAttempts) =>
    planLoss({ observed, startAttempts, restartPolicy: 'on_host_loss', restarts }, loss, pauses)
  const statusReason = 'start_failed: the runtime did not start'
  assert.deepEqual(plan(1, 'starting', 1), { move: 'retry', retryAfterMs: 1, statusReason, startAttempts: 1 })
  assert.deepEqual(plan(1), { move: 'restart', retryAfterMs: 2_000, statusReason, restarts: 2 })
  assert.deepEqual(plan(LIMITS.restartsInARow - 1, 'assigned'), {
    move: 'restart',
    retryAfterMs: 1_000 * 2 ** (LIMITS.restartsInARow - 1),
    statusReason,
    restarts: LIMITS.restartsInARow,
  })
  const last = plan(LIMITS.restartsInARow)
  assert.ok(last.move === 'fail' && last.startFailed, 'who waits for a start is told')
  assert.match(last.statusReason, /^restarts_used_up: .*8 times in a row.*\(start_failed: the runtime did not start\)$/)
  assert.deepEqual(plan(0), { move: 'fail', statusReason, startFailed: true }, 'a create or a start by hand has no row to go on with')
  for (const observed of ['assigned', 'starting', 'ready'] as const) assert.ok(mayMove('restart', observed), observed)
})

test('the loss of a host is waited for no longer, since its fence was, and counts in the row all the same', () => {
  const loss = { reason: 'host_lost', detail: null } as const
  const statusReason = 'host_lost: its host was not heard of for too long, and was fenced'
  const plan = (observed: 'starting' | 'ready', restarts: number) =>
    planLoss({ observed, startAttempts: 2, restartPolicy: 'on_host_loss', restarts }, loss, pauses)
  for (const restarts of [0, LIMITS.restartsInARow - 1]) {
    assert.deepEqual(plan('ready', restarts), { move: 'restart', retryAfterMs: 0, statusReason, restarts: restarts + 1 })
  }
  assert.equal(plan('ready', LIMITS.restartsInARow).move, 'fail')
  assert.deepEqual(plan('starting', 0), { move: 'retry', retryAfterMs: 0, statusReason, startAttempts: 2 })
})

test(`the pause doubles with each restart of a row, and after ${LIMITS.restartsInARow} it is failed`, () => {
  const loss = { reason: 'runtime_exited', detail: 'memory' } as const
  const row = Array.from({ length: LIMITS.restartsInARow + 1 }, (_, restarts) => planLoss({ ...ready, restartPolicy: 'always', restarts }, loss, pauses))
  for (const [index, plan] of row.slice(0, -1).entries()) {
    assert.deepEqual(plan, { move: 'restart', retryAfterMs: 1_000 * 2 ** index, statusReason: 'runtime_exited: memory', restarts: index + 1 })
  }
  const last = row.at(-1)
  assert.ok(last?.move === 'fail')
  assert.match(last.statusReason, /^restarts_used_up: it was restarted 8 times in a row and ended again \(runtime_exited: memory\)$/)
})
