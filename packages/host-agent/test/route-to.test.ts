/** guard: conn.gen, over every phase and every relation of generations. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError } from '@sandglass/contract'
import type { SandboxPhase } from '../src/domain/sandbox-record.ts'
import { requireLease, routeTo } from '../src/reconcile/route-to.ts'
import { recordIn, SANDBOX } from './domain/builders.ts'

const channel = { is: 'the channel' }

function routed(phase: SandboxPhase | undefined, high: number, asked: number, connected = true): unknown {
  const record = phase === undefined ? undefined : { ...recordIn(phase), high }
  const worker = { record, channel: connected ? channel : undefined }
  const workers = { find: (sandbox: string) => (sandbox === SANDBOX && record !== undefined ? worker : undefined) }
  try {
    return routeTo(workers, { sandbox: SANDBOX, generation: asked })
  } catch (error) {
    if (error instanceof CodedError) return error.code
    throw error
  }
}

const rows: [phase: SandboxPhase | undefined, high: number, asked: number, expected: unknown][] = [
  [undefined, 5, 5, 'sandbox_not_found'],
  ['launching', 5, 5, 'sandbox_not_ready'],
  ['running', 5, 5, channel],
  ['ending', 5, 5, 'sandbox_ended'],
  ['gone', 5, 5, 'sandbox_ended'],
  ['launching', 5, 4, 'stale_generation'],
  ['running', 5, 4, 'stale_generation'],
  ['ending', 6, 5, 'sandbox_ended'],
  ['gone', 6, 5, 'sandbox_ended'],
  ['launching', 5, 6, 'stale_generation'],
  ['running', 5, 6, 'stale_generation'],
  ['ending', 5, 6, 'stale_generation'],
  ['gone', 5, 6, 'stale_generation'],
]
for (const [phase, high, asked, expected] of rows) {
  test(`generation ${asked} of a sandbox that is ${phase ?? 'unknown'} at ${high}`, () => assert.deepEqual(routed(phase, high, asked), expected))
}

test('a runtime that was not adopted yet is lost contact', () => assert.equal(routed('running', 5, 5, false), 'lost_contact'))

for (const [what, lease] of [
  ['was taken away', { epoch: 0, leftMs: 10_000, frozen: false }],
  ['has run out', { epoch: 3, leftMs: 0, frozen: false }],
  ['has run out', { epoch: 3, leftMs: 10_000, frozen: true }],
] as const) {
  test(`nobody is let in where ${JSON.stringify(lease)}`, () => {
    assert.throws(
      () => requireLease(lease),
      (error: unknown) => error instanceof CodedError && error.code === 'unavailable' && error.message.includes(what),
    )
  })
}

test('everybody is while the lease lasts', () => requireLease({ epoch: 3, leftMs: 1, frozen: false }))
