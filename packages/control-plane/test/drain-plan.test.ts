/** Drains as pure functions: what is retired when, and what is waited for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SANDBOX_STATUSES, type SandboxStatus } from '@sandglass/contract'
import fc from 'fast-check'
import { type DrainFacts, type Draining, drainView, planDrain } from '../src/domain/host/drain.ts'
import { changedLabels } from '../src/domain/host/labels.ts'
import { planLoss, wantsRestart } from '../src/domain/sandbox/end-plan.ts'

const PAUSES = { retryBaseMs: 1, restartBaseMs: 1 }

const one = (observed: SandboxStatus, change: Partial<Draining> = {}): Draining => ({
  hostId: 'h',
  sandboxId: 's',
  generation: 1,
  observed,
  policy: 'never',
  endsInMs: 1_000,
  ...change,
})
const drainings = fc.array(
  fc.record({
    hostId: fc.constantFrom('h', 'i'),
    sandboxId: fc.string(),
    generation: fc.nat(),
    observed: fc.constantFrom(...SANDBOX_STATUSES),
    policy: fc.constantFrom('never' as const, 'on_host_loss' as const, 'always' as const),
    endsInMs: fc.integer({ min: -100_000, max: 100_000 }),
  }),
)

test('a sandbox without a restart policy ends with its host, others begin again elsewhere', () => {
  assert.deepEqual(
    (['never', 'on_host_loss', 'always'] as const).map((policy) => wantsRestart(policy, 'host_drained')),
    [false, true, true],
  )
})

test('what is not up yet moves at once; what runs may finish until it has to end, unless it can begin again elsewhere', () => {
  assert.equal(planDrain([one('assigned'), one('starting')]).retire.length, 2)
  assert.deepEqual(planDrain([one('ready')]), { retire: [], nextInMs: 1_000 })
  assert.deepEqual(planDrain([one('ready', { endsInMs: 0 })]).retire.length, 1)
  assert.deepEqual(planDrain([one('ready', { policy: 'on_host_loss' })]).retire.length, 1)
  assert.deepEqual(planDrain([one('terminating', { endsInMs: -1 }), one('failed', { endsInMs: -1 })]), { retire: [], nextInMs: undefined })
})

test('whatever the snapshot: what is retired may be lost, nothing that is due is left out, and the next look is never late', () => {
  fc.assert(
    fc.property(drainings, (draining) => {
      const { retire, nextInMs } = planDrain(draining)
      for (const { observed, sandboxId, policy } of retire) {
        const plan = planLoss({ observed, startAttempts: 99, restartPolicy: policy, restarts: 99 }, { reason: 'host_drained', detail: null }, PAUSES)
        assert.notEqual(plan.move, 'none', sandboxId)
        if (plan.move === 'retry') assert.deepEqual([plan.retryAfterMs, plan.startAttempts], [0, 98], 'at once, and it uses nothing up')
        if (plan.move === 'restart') assert.deepEqual([plan.retryAfterMs, plan.restarts], [0, 99], 'at once, and it uses nothing up')
      }
      for (const left of draining.filter((candidate) => !retire.includes(candidate))) {
        const onItsWay = !['assigned', 'starting', 'ready'].includes(left.observed)
        assert.ok(onItsWay || (left.endsInMs > 0 && nextInMs !== undefined && nextInMs <= left.endsInMs))
      }
    }),
  )
})

const facts = (change: Partial<DrainFacts>): DrainFacts => ({
  startedAt: new Date(0),
  deadlineAt: new Date(600_000),
  over: false,
  lost: false,
  sandboxes: 0,
  mayFinish: 0,
  poolMembers: 0,
  ...change,
})
const waits = (change: Partial<DrainFacts>) => drainView(facts(change)).waits_for.map(({ reason, count }) => `${reason} ${count}`)

test('a drain tells what it waits for, and is over when nothing is left, however late', () => {
  assert.deepEqual(waits({ sandboxes: 5, mayFinish: 2, poolMembers: 3 }), ['may_finish 2', 'ending 3', 'pool_members 3'])
  assert.deepEqual(waits({ sandboxes: 5, mayFinish: 2, poolMembers: 3, lost: true }), ['may_finish 2', 'host_lost 6'])
  assert.deepEqual(waits({}), [])
  assert.equal(drainView(facts({ over: true })).state, 'drained')
  assert.equal(drainView(facts({ over: true, sandboxes: 1 })).state, 'overdue')
  assert.equal(drainView(facts({ poolMembers: 1 })).state, 'draining')
  const { ends_at, left } = drainView(facts({ sandboxes: 4 }))
  assert.deepEqual([ends_at, left], ['1970-01-01T00:09:30.000Z', 4])
  assert.equal(drainView(facts({ deadlineAt: new Date(10_000) })).ends_at, '1970-01-01T00:00:00.000Z', 'not before it began')
})

test('labels: what is named changes, the rest stays', () => {
  assert.deepEqual(changedLabels({ a: '1', b: '2' }, { b: null, c: '3' }), { a: '1', c: '3' })
  assert.deepEqual(changedLabels({ a: '1' }, { z: null, a: '1' }), { a: '1' })
})
