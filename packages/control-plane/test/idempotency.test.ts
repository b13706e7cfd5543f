/** One key, one effect: under races, after lost answers, across states. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CreatedApiKey } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import type { CrashPoint } from '../src/index.ts'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

/** Does something the first time that a point is reached. */
function onceAt(point: CrashPoint, act: () => Promise<void> | void) {
  let left = 1
  return {
    async reach(reached: CrashPoint) {
      if (reached !== point || left === 0) return
      left -= 1
      await act()
    },
  }
}
const fail = (): never => {
  throw new Error('fault')
}

describe('a create with a key', () => {
  test('64 at the same time make one sandbox', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const answers = await Promise.all(Array.from({ length: 64 }, () => rig.create({ name: 'one' }, { idempotencyKey: 'same' })))
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201])
    assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1)
    assert.equal(answers.filter((answer) => answer.headers.get('idempotency-replayed') === null).length, 1)
    assert.deepEqual(await rig.rows('SELECT count(*)::int AS sandboxes FROM sandglass.sandboxes'), [{ sandboxes: 1 }])
    assert.deepEqual(await rig.rows('SELECT running_sandboxes_used AS used FROM sandglass.quotas'), [{ used: 1 }])
  })

  test('answers with the sandbox as it now is: 202 while pending, 201 when ready, and a wait waits again', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    const second = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    assert.deepEqual([first.status, second.status], [202, 202])
    assert.equal(second.headers.get('location'), first.headers.get('location'))
    const waiting = rig.create({}, { wait: 10, idempotencyKey: 'k' })
    await rig.host()
    const third = await waiting
    assert.equal(third.status, 201)
    assert.equal(third.body.id, first.body.id)
    assert.equal(third.headers.get('idempotency-replayed'), 'true')
  })

  test('one that was stopped before it was ready is told as that until it is started; from then on its repeats find the sandbox', async () => {
    await using rig = await startRig(postgres.current)
    const again = (wait = 0) => rig.create({ name: 'box' }, { wait, idempotencyKey: 'k' })
    await again()
    await rig.run('stop', 'box')
    const stopped = await again()
    assert.deepEqual([stopped.status, stopped.problem?.code], [409, 'sandbox_stopped'])
    const starting = await rig.run('start', 'box', { wait: 0 })
    const onItsWay = await again()
    assert.deepEqual([onItsWay.status, onItsWay.body.status], [202, 'pending'], JSON.stringify(onItsWay.body))
    assert.equal(onItsWay.headers.get('location'), starting.headers.get('location'))
    await rig.host()
    await rig.run('start', 'box')
    const ready = await again()
    assert.deepEqual([ready.status, ready.body.status], [201, 'ready'])
    assert.equal(ready.headers.get('location'), `/v1/sandboxes/${ready.body.id}`)
  })

  test('one that was ready has been created: stopped since, 201 says so; started again, 202 until it is ready', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const again = () => rig.create({ name: 'box' }, { idempotencyKey: 'k' })
    await again()
    await rig.run('stop', 'box')
    const stopped = await again()
    assert.deepEqual([stopped.status, stopped.body.status], [201, 'stopped'])
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    const starting = await rig.run('start', 'box', { wait: 0 })
    const onItsWay = await again()
    assert.deepEqual([onItsWay.status, onItsWay.body.status, onItsWay.headers.get('location')], [202, 'pending', starting.headers.get('location')])
  })

  test('another body is refused; the same body in another order of fields is the same', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.create({ ttl_seconds: 60, metadata: { a: '1', b: '2' } }, { wait: 0, idempotencyKey: 'k' })
    const reordered = await rig.create({ metadata: { b: '2', a: '1' }, ttl_seconds: 60 }, { wait: 0, idempotencyKey: 'k' })
    assert.equal(reordered.body.id, first.body.id)
    const other = await rig.create({ ttl_seconds: 61 }, { wait: 0, idempotencyKey: 'k' })
    assert.equal(other.status, 422)
    assert.equal(other.problem?.code, 'idempotency_key_reused')
  })

  test('keys belong to a tenant', async () => {
    await using rig = await startRig(postgres.current)
    const other = await rig.newKey('acme', 'member')
    const mine = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    const theirs = await rig.create({}, { wait: 0, idempotencyKey: 'k', key: other })
    assert.equal(theirs.status, 202)
    assert.notEqual(theirs.body.id, mine.body.id)
  })

  test('a refused create leaves its key free', async () => {
    await using rig = await startRig(postgres.current)
    await rig.create({ name: 'taken' }, { wait: 0 })
    assert.equal((await rig.create({ name: 'taken' }, { wait: 0, idempotencyKey: 'k' })).problem?.code, 'name_taken')
    await rig.remove('taken', 0)
    assert.equal((await rig.create({ name: 'taken' }, { wait: 0, idempotencyKey: 'k' })).status, 202)
  })

  test('killed between commit and answer: the same key gives the same sandbox', async () => {
    await using rig = await startRig(postgres.current, { faults: onceAt('create.committed', fail) })
    await rig.host()
    assert.equal((await rig.create({ name: 'lost' }, { idempotencyKey: 'k' })).status, 500)
    const again = await rig.create({ name: 'lost' }, { idempotencyKey: 'k' })
    assert.equal(again.status, 201)
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(await rig.rows('SELECT id FROM sandglass.sandboxes'), [{ id: again.body.id }])
  })

  test('killed before the commit: nothing was made, and the key makes it', async () => {
    await using rig = await startRig(postgres.current, { faults: onceAt('create.open', fail) })
    assert.equal((await rig.create({}, { wait: 0, idempotencyKey: 'k' })).status, 500)
    assert.deepEqual(await rig.rows('SELECT id FROM sandglass.sandboxes'), [])
    assert.deepEqual(await rig.rows('SELECT running_sandboxes_used AS used FROM sandglass.quotas'), [{ used: 0 }])
    assert.equal((await rig.create({}, { wait: 0, idempotencyKey: 'k' })).status, 202)
  })

  test('a repeat waits for a first one that is still open', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const stall = async (): Promise<void> => {
      reached.resolve()
      await gate.promise
    }
    await using rig = await startRig(postgres.current, { faults: onceAt('create.open', stall) })
    const first = rig.create({}, { wait: 0, idempotencyKey: 'k' })
    await reached.promise
    const second = rig.create({}, { wait: 0, idempotencyKey: 'k' })
    await until('the second to wait for the first', async () => {
      const [row] = await rig.rows<{ waiting: number }>(
        "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      )
      return row?.waiting === 1
    })
    gate.resolve()
    assert.equal((await second).body.id, (await first).body.id)
  })

  test('a repeat that waits too long is told so, and may try again', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const stall = async (): Promise<void> => {
      reached.resolve()
      await gate.promise
    }
    await using rig = await startRig(postgres.current, { faults: onceAt('create.open', stall) })
    const first = rig.create({}, { wait: 0, idempotencyKey: 'k' })
    await reached.promise
    const second = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    assert.equal(second.status, 409)
    assert.equal(second.problem?.code, 'idempotency_in_progress')
    assert.equal(second.problem?.retryable, true)
    // The first one is still open: it was not what ended the wait.
    gate.resolve()
    await first
  })

  test('a key is forgotten after its life', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    await rig.rows("UPDATE sandglass.idempotency_keys SET created_at = clock_timestamp() - interval '24 h'")
    const second = await rig.create({}, { wait: 0, idempotencyKey: 'k' })
    assert.notEqual(second.body.id, first.body.id)
    assert.equal(second.headers.get('idempotency-replayed'), null)
  })

  test('a malformed or oversize key is refused', async () => {
    await using rig = await startRig(postgres.current)
    assert.equal((await rig.create({}, { wait: 0, idempotencyKey: 'x'.repeat(256) })).problem?.code, 'limit_exceeded')
    assert.equal((await rig.create({}, { wait: 0, idempotencyKey: 'a b' })).problem?.code, 'invalid_request')
  })
})

test('a repeated creation of an API key shows the same secret, of which the database holds nothing', async () => {
  await using rig = await startRig(postgres.current)
  const make = async () =>
    await rig.call<CreatedApiKey>('POST', '/v1/api-keys', {
      key: rig.keys.owner,
      body: { name: 'ci', role: 'viewer' },
      headers: { 'idempotency-key': 'secret-text' },
    })
  const first = await make()
  const second = await make()
  assert.equal(first.status, 201)
  assert.deepEqual(second.body, first.body)
  assert.equal(second.headers.get('idempotency-replayed'), 'true')
  assert.equal((await rig.call('GET', '/v1/sandboxes', { key: first.body.key })).status, 200)
  const stored = JSON.stringify([await rig.rows('SELECT * FROM sandglass.api_keys'), await rig.rows('SELECT * FROM sandglass.idempotency_keys')])
  assert.ok(!stored.includes(first.body.key) && !stored.includes('secret-text'))
})
