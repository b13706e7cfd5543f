/** GET /v1/events: what a reader sees, how it goes on, and when it has to go. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { EventReader } from './event-reader.ts'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

/** Sealed events of the default tenant, without sandboxes. */
async function makeEvents(rig: Rig, count: number, reason = 'x'): Promise<void> {
  await rig.rows(
    `INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, reason)
     SELECT t.id, 'sandbox.ready', 'sbl1aaaaaaaaaaaaaaaa', n, $2 FROM sandglass.tenants t, generate_series(1, $1::int) n WHERE t.name = 'default' ORDER BY n`,
    [count, reason],
  )
  await until('everything to be sealed', async () => (await rig.rows('SELECT FROM sandglass.events WHERE position IS NULL')).length === 0)
}

/** A reconciler does it too, at its own time. */
async function positionsKept(rig: Rig): Promise<number[]> {
  await rig.modules.events.deleteOldEvents(rig.db, 100)
  return (await rig.rows<{ position: number }>('SELECT position::int FROM sandglass.events ORDER BY position')).map((row) => row.position)
}

const openStreams = async (rig: Rig): Promise<number> =>
  Number(/^sandglass_event_streams (\d+)$/m.exec((await rig.call<string>('GET', '/metrics', { key: '' })).body)?.[1])

test('a sandbox’s life, live and from every position of it', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  await using live = await EventReader.open(rig)
  const { id } = (await rig.create({ name: 'one' })).body
  await rig.call('PATCH', `/v1/sandboxes/${id}`, { body: { metadata: { a: 'b' } } })
  await rig.call('POST', `/v1/sandboxes/${id}/extend`, { body: { ttl_seconds: 7_200 } })
  await rig.remove(id)
  await until('its end', () => live.changes.find((change) => change.type === 'sandbox.terminated'))
  assert.deepEqual(
    // A start that is ready soon was never seen `starting`.
    live.changes.map((change) => change.type).filter((type) => type !== 'sandbox.starting'),
    ['pending', 'assigned', 'ready', 'updated', 'extended', 'terminating', 'terminated'].map((word) => `sandbox.${word}`),
  )
  assert.deepEqual(
    live.changes.map((change) => change.position),
    live.changes.map((_, index) => index + 1),
  )
  assert.ok(live.changes.every((change) => change.sandbox_id === id))
  for (let since = 0; since <= live.changes.length; since += 1) {
    for (const [query, options] of [
      [`?since=${since}`, {}],
      // A browser comes back with its first query and the header: the header goes first.
      ['?since=0', { lastEventId: String(since) }],
    ] as const) {
      await using again = await EventReader.open(rig, query, options)
      await until(`the rest behind ${since}`, () => again.position === live.changes.length)
      assert.deepEqual(again.changes, live.changes.slice(since))
      assert.deepEqual(again.gaps, [])
    }
  }
})

test('a tenant sees its own, in positions of its own', async () => {
  await using rig = await startRig(postgres.current)
  const acme = await rig.newKey('acme', 'member')
  await using mine = await EventReader.open(rig, '?since=0')
  await using theirs = await EventReader.open(rig, '?since=0', { key: acme })
  const ids = [(await rig.create({}, { wait: 0 })).body.id, (await rig.create({}, { wait: 0, key: acme })).body.id]
  await until('both', () => mine.changes.length === 1 && theirs.changes.length === 1)
  assert.deepEqual(
    [mine, theirs].map(({ changes }) => changes.map((change) => [change.position, change.sandbox_id])),
    [[[1, ids[0]]], [[1, ids[1]]]],
  )
})

test('a commit of another replica is seen here without waiting for a sweep', async () => {
  await using rig = await startRig(postgres.current, { timing: { sweepMs: 60_000 } })
  await using twin = await startRig(postgres.current, { timing: { sweepMs: 60_000 }, twinOf: rig })
  await using reader = await EventReader.open(rig)
  await twin.create({}, { wait: 0 })
  await until('the event', () => reader.changes[0])
})

test('heartbeats carry the position, also for who saw no change', async () => {
  await using rig = await startRig(postgres.current, { timing: { eventHeartbeatMs: 20 } })
  await makeEvents(rig, 3)
  await using reader = await EventReader.open(rig)
  await until('a heartbeat', () => reader.names.includes('heartbeat'))
  assert.equal(reader.position, 3)
  assert.deepEqual(reader.changes, [])
})

test('what is past its retention is a gap with its bounds, and the feed goes on behind it', async () => {
  await using rig = await startRig(postgres.current)
  await makeEvents(rig, 6)
  await rig.rows('UPDATE sandglass.events SET at = clock_timestamp() - make_interval(secs => $1) WHERE position IN (1, 2, 4)', [
    LIMITS.eventRetentionSeconds + 1,
  ])
  // Only from the front: 4 is old, and 3 before it is not.
  assert.deepEqual(await positionsKept(rig), [3, 4, 5, 6])
  await using reader = await EventReader.open(rig, '?since=1')
  await until('the rest', () => reader.position === 6)
  assert.deepEqual(reader.gaps, [{ position: 2, reason: 'expired', from: 2 }])
  assert.deepEqual(
    reader.changes.map((change) => change.position),
    [3, 4, 5, 6],
  )
  // All of it is gone, and the feed remembers where it was.
  await rig.rows('UPDATE sandglass.events SET at = clock_timestamp() - make_interval(secs => $1)', [LIMITS.eventRetentionSeconds + 1])
  assert.deepEqual(await positionsKept(rig), [])
  await using late = await EventReader.open(rig, '?since=3')
  await until('the gap', () => late.gaps[0])
  assert.deepEqual(late.gaps, [{ position: 6, reason: 'expired', from: 4 }])
  await makeEvents(rig, 1)
  await until('the next event', () => late.changes[0])
  assert.equal(late.changes[0]?.position, 7)
})

test(`of a tenant’s events the last ${LIMITS.eventsKeptPerTenant} are kept`, async () => {
  await using rig = await startRig(postgres.current)
  await makeEvents(rig, 20)
  await rig.rows('UPDATE sandglass.event_feeds SET head = $1', [LIMITS.eventsKeptPerTenant + 7])
  assert.deepEqual(await positionsKept(rig), [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
})

test('a position that no feed gave is a gap of its own, and the feed goes on from now', async () => {
  await using rig = await startRig(postgres.current)
  await makeEvents(rig, 2)
  for (const lastEventId of ['3', '999999999999999', '-1', 'sbl1aaaaaaaaaaaaaaaa', '1.5', '1e3', '0x1']) {
    await using reader = await EventReader.open(rig, '', { lastEventId })
    assert.deepEqual(reader.gaps, [{ position: 2, reason: 'unknown', from: null }], lastEventId)
    assert.equal(reader.position, 2)
  }
  for (const query of ['since=-1', 'since=ten', 'since=1.5', 'since=99999999999999999999', 'since=1&since=2', 'until=3']) {
    assert.equal((await rig.call('GET', `/v1/events?${query}`)).problem?.code, 'invalid_request', query)
  }
})

test(`a key has at most ${LIMITS.eventStreamsPerKey} streams open`, async () => {
  await using rig = await startRig(postgres.current)
  await using readers = new AsyncDisposableStack()
  for (let index = 0; index < LIMITS.eventStreamsPerKey; index += 1) readers.use(await EventReader.open(rig))
  const refused = await rig.call('GET', '/v1/events', { key: rig.keys.viewer })
  assert.equal(refused.problem?.code, 'too_many_sessions')
  assert.deepEqual(refused.problem?.limit, { name: 'eventStreamsPerKey', value: LIMITS.eventStreamsPerKey })
  await using other = await EventReader.open(rig, '', { key: rig.keys.member })
  assert.equal(other.isOver, false)
  await readers[Symbol.asyncDispose]()
  await until('the streams to be closed', async () => (await openStreams(rig)) === 1)
  await using again = await EventReader.open(rig)
  assert.equal(again.isOver, false)
})

test('a revoked key’s streams end, and say why; so do those of a key past its time', async () => {
  await using rig = await startRig(postgres.current)
  const make = async () =>
    (await rig.call<{ id: string; key: string }>('POST', '/v1/api-keys', { key: rig.keys.owner, body: { name: 'x', role: 'viewer' } })).body
  const [revoked, expired] = [await make(), await make()]
  await using first = await EventReader.open(rig, '', { key: revoked.key })
  await using second = await EventReader.open(rig, '', { key: expired.key })
  await using other = await EventReader.open(rig)
  await rig.call('DELETE', `/v1/api-keys/${revoked.id}`, { key: rig.keys.owner })
  await until('the end of the first', () => first.isOver)
  assert.equal(first.problem?.code, 'session_revoked')
  await rig.rows('UPDATE sandglass.api_keys SET expires_at = clock_timestamp() WHERE id = $1', [expired.id])
  await until('the end of the second', () => second.isOver)
  assert.equal(second.problem?.code, 'session_revoked')
  assert.equal(other.isOver, false)
})

test('a revocation on another replica ends the stream here', async () => {
  await using rig = await startRig(postgres.current)
  await using twin = await startRig(postgres.current, { twinOf: rig })
  const { id, key } = (await rig.call<{ id: string; key: string }>('POST', '/v1/api-keys', { key: rig.keys.owner, body: { name: 'x', role: 'viewer' } })).body
  await using reader = await EventReader.open(rig, '', { key })
  await twin.call('DELETE', `/v1/api-keys/${id}`, { key: rig.keys.owner })
  await until('its end', () => reader.isOver)
})

test('a reader that takes nothing is cut, and costs nobody else anything', async () => {
  await using rig = await startRig(postgres.current, { timing: { eventStallMs: 300 } })
  await makeEvents(rig, 20_000, 'x'.repeat(1_000))
  const { hostname, port } = new URL(rig.url)
  const stuck = connect(Number(port), hostname)
  stuck.on('error', () => undefined)
  // Its stream is open; from here on it takes nothing.
  const began = Promise.withResolvers<void>()
  let head = ''
  stuck.on('data', (chunk) => {
    head += chunk.toString()
    if (!head.includes('event: ready')) return
    stuck.pause()
    began.resolve()
  })
  stuck.write(`GET /v1/events?since=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${rig.keys.viewer}\r\n\r\n`)
  await began.promise
  await using reader = await EventReader.open(rig, '?since=19999', { key: rig.keys.member })
  await until('the other one’s event', () => reader.changes.length === 1)
  await until('the cut', async () => (await openStreams(rig)) === 1)
  stuck.destroy()
})

test('the end of the process tells readers to come back', async () => {
  await using rig = await startRig(postgres.current)
  await using reader = await EventReader.open(rig)
  await rig.stop()
  await until('the end', () => reader.isOver)
  assert.deepEqual([reader.problem?.code, reader.problem?.retryable], ['unavailable', true])
})
