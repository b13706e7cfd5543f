/** Whoever answers at a host's address must be that host: nothing is sent to anybody else, and it is told on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS, type RefusalReason } from '@sandglass/contract'
import { type Certified, TestAuthority } from '@sandglass/testkit'
import { Bench } from './peers/bench.ts'
import { GATEWAY } from './peers/control-plane.ts'
import { answerJson, HOST_ID } from './peers/host.ts'

const HOUR_MS = 3_600_000
const host = { role: 'host', name: HOST_ID } as const
const past = Date.now() - LIMITS.certificateLifeMs - LIMITS.certificateToleranceMs - HOUR_MS

const impostors: [what: string, certified: Certified & { by?: TestAuthority }, reason: RefusalReason][] = [
  ['another host', { role: 'host', name: `ho${'b'.repeat(16)}` }, 'wrong_name'],
  ['a gateway', { role: 'gateway', name: HOST_ID }, 'wrong_role'],
  ['a control plane', { role: 'control-plane', name: HOST_ID }, 'wrong_role'],
  ['a host of another CA', { ...host, by: new TestAuthority() }, 'wrong_ca'],
  ['a host of another region', { ...host, region: 'x1' }, 'not_an_identity'],
  ['a host whose certificate has expired', { ...host, atMs: past }, 'expired'],
]
for (const [what, certified, reason] of impostors) {
  test(`${what} in the place of a host gets nothing, and is told on`, async () => {
    await using bench = await Bench.scripted(({ stream }) => answerJson(stream, 200, { items: [] }), { certified })
    const answer = await bench.ask('/processes')
    assert.deepEqual([answer.status, JSON.parse(await answer.text()).code], [503, 'unavailable'])
    assert.deepEqual([...new Set(bench.refusals.map((refused) => refused.reason))], [reason])
    assert.equal(bench.host.requests.length, 0)
  })
}

test('a host whose clock is hours away is spoken to', async () => {
  for (const hours of [-40, -12, 12, 23]) {
    const certified = { ...host, atMs: Date.now() + hours * HOUR_MS }
    await using bench = await Bench.scripted(({ stream }) => answerJson(stream, 200, { items: [] }), { certified })
    assert.equal((await bench.ask('/processes')).status, 200, `${hours} h`)
  }
})

test('after a renewal, requests come over a session of the new certificate', async () => {
  await using bench = await Bench.scripted(({ stream }) => answerJson(stream, 200, { items: [] }))
  assert.equal((await bench.ask('/processes')).status, 200)
  const { issued } = GATEWAY.record
  assert.ok(issued !== undefined)
  GATEWAY.replace(issued)
  assert.equal((await bench.ask('/processes')).status, 200)
  assert.equal(bench.host.sessionsOpened, 2)
})
