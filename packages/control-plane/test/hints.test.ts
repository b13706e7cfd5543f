/**
 * Two control planes of which no wake-up arrives, and two of which each arrives twice and late: what they are asked for still happens, once, within a few
 * sweep periods. Any other test of this package runs the same way with SANDGLASS_TEST_HINTS.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '@sandglass/testkit'
import { startRig, usePostgres } from './harness.ts'
import { HINTS } from './hints.ts'

const postgres = usePostgres()
const SWEEP_MS = 200
/** Each step waits for a sweep of its own: placement, the watch, the one who waits. */
const BOUND_MS = 30 * SWEEP_MS
const COUNT = 12

for (const [what, hint] of Object.entries(HINTS)) {
  describe(`hints that are ${what}`, () => {
    test('change when a create, a stop, a start and a delete happen, not whether, nor how often', async () => {
      await using rig = await startRig(postgres.current, { timing: { sweepMs: SWEEP_MS }, world: { hint } })
      await using twin = await startRig(postgres.current, { timing: { sweepMs: SWEEP_MS }, world: { hint }, twinOf: rig })
      // The host hears of the one what was asked of the other.
      await twin.host()
      const began = performance.now()
      const made = await Promise.all(Array.from({ length: COUNT }, (_, index) => (index % 2 === 0 ? rig : twin).create({}, { idempotencyKey: `k${index}` })))
      const tookMs = performance.now() - began
      assert.deepEqual([...new Set(made.map(({ status, body }) => `${status} ${body.status}`))], ['201 ready'])
      assert.ok(tookMs < BOUND_MS, `creates took ${Math.round(tookMs)} ms`)
      const ids = made.map(({ body }) => body.id)
      assert.equal(new Set(ids).size, COUNT)
      // Asked at the one, done by whichever is first.
      const [first = '', second = ''] = ids
      assert.equal((await twin.run('stop', first)).body.status, 'stopped')
      assert.equal((await rig.run('start', first)).body.status, 'ready')
      assert.equal((await twin.remove(second)).status, 204)
      const live = await rig.rows<{ count: number }>('SELECT count(*)::int FROM sandglass.assignments WHERE released_at IS NULL')
      assert.equal(live[0]?.count, COUNT - 1, 'one assignment for each that runs')
      await Promise.all(ids.filter((id) => id !== second).map((id, index) => (index % 2 === 0 ? twin : rig).remove(id)))
      await until('everything being given back', async () => {
        const [left] = await rig.rows<{ reserved: string }>('SELECT sum(memory_mb_reserved)::text AS reserved FROM sandglass.host_capacity')
        return Number(left?.reserved) === 0
      })
      const outbox = await until('the outbox being empty', async () =>
        (await rig.rows('SELECT 1 FROM sandglass.outbox LIMIT 1')).length === 0 ? 'empty' : undefined,
      )
      assert.equal(outbox, 'empty')
    })

    test('keep nobody’s deadline from coming', async () => {
      await using rig = await startRig(postgres.current, { timing: { sweepMs: SWEEP_MS }, world: { hint } })
      await rig.host()
      const { body } = await rig.create({ ttl_seconds: 60 })
      await rig.rows(`UPDATE sandglass.sandboxes SET expires_at = clock_timestamp() WHERE id = '${body.id}'`)
      await until('its end', async () => (await rig.get(body.id)).status === 'terminated')
    })
  })
}
