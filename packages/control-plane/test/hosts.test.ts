/** The operator's view of hosts: what is told of them, labels, cordon, removal. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_RESOURCES, type Host, LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'
import { actions, ask, told } from './host-operator.ts'

const postgres = usePostgres()

const SMALL = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }
const BIG_HOST = { vcpu: 64, memory_mb: 200_000, disk_gb: 2_000 }

const assignmentsOn = async (rig: Rig, hostId: string): Promise<number> =>
  (await rig.rows<{ count: number }>('SELECT count(*)::int AS count FROM sandglass.assignments WHERE host_id = $1', [hostId]))[0]?.count ?? 0

/** So many transactions of this database wait for a lock. */
const waitForLocks = async (rig: Rig, count: number): Promise<boolean> =>
  (await rig.rows("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")).length >= count

describe('a host', () => {
  test('is told with its capacity, labels, lease and live assignments, by id and by name', async () => {
    await using rig = await startRig(postgres.current)
    const { id } = await rig.host({ name: 'one' })
    await rig.create()
    const host = await told(rig, 'one')
    const { status, cordoned, drain, labels, region, sandboxes, capacity, reserved, lease_age_seconds: age } = host
    assert.deepEqual(
      { id: host.id, status, cordoned, drain, labels, region, sandboxes },
      { id, status: 'ready', cordoned: false, drain: null, labels: {}, region: 'l1', sandboxes: 1 },
    )
    assert.deepEqual([capacity.memory_mb, reserved.memory_mb], [8_192, DEFAULT_RESOURCES.memory_mb])
    assert.ok(age !== null && age >= 0 && age < 20, String(age))
    const published = { lease_seconds: LIMITS.leaseMs / 1_000, fence_grace_seconds: LIMITS.fenceGraceMs / 1_000 }
    assert.deepEqual(host.lease, { state: 'held', ...published, fenced_at: null })
    await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '31 s'")
    const lost = await told(rig, id)
    assert.deepEqual([lost.status, lost.lease.state], ['lost', 'late'])
    assert.ok((lost.lease_age_seconds ?? 0) >= 31)
  })

  test('is listed in pages, by status and by label', async () => {
    await using rig = await startRig(postgres.current)
    for (const name of ['a', 'b', 'c']) await rig.host({ name })
    await ask(rig, 'PATCH', '/b', { labels: { zone: 'z', class: 'big' } })
    await ask(rig, 'POST', '/c/cordon')
    const list = async (query: string) =>
      (await rig.call<{ items: Host[]; next_cursor: string | null }>('GET', `/v1/hosts${query}`, { key: rig.keys.operator })).body
    const names = async (query: string) => (await list(query)).items.map((host) => host.name)
    assert.deepEqual(await names(''), ['c', 'b', 'a'])
    assert.deepEqual(await names('?status=cordoned'), ['c'])
    assert.deepEqual(await names('?status=ready'), ['b', 'a'])
    assert.deepEqual(await names('?label=class%3Dbig'), ['b'])
    assert.deepEqual(await names('?label=class%3Dsmall'), [])
    const first = await list('?limit=1&status=ready')
    assert.deepEqual(await names(`?limit=1&status=ready&cursor=${first.next_cursor}`), ['a'])
    assert.equal((await rig.call('GET', '/v1/hosts?label=class', { key: rig.keys.operator })).problem?.code, 'invalid_request')
  })

  test('of a name that several have is never guessed', async () => {
    await using rig = await startRig(postgres.current)
    const twins = [await rig.host({ name: 'twin' }), await rig.host({ name: 'twin' })]
    for (const [method, path] of [
      ['GET', '/twin'],
      ['POST', '/twin/cordon'],
      ['DELETE', '/twin'],
    ] as const) {
      const { status, problem } = await ask(rig, method, path)
      assert.deepEqual([status, problem?.code], [409, 'host_ambiguous'], path)
      for (const { id } of twins) assert.ok(problem?.detail.includes(id), problem?.detail)
    }
    assert.equal((await ask(rig, 'POST', `/${twins[0]?.id}/cordon`)).body.cordoned, true)
    assert.equal((await told(rig, twins[1]?.id ?? '')).cordoned, false)
    const nobody = await ask(rig, 'POST', '/nobody/drain', {})
    assert.deepEqual([nobody.status, nobody.problem?.detail], [404, 'There is no host nobody. List the hosts that there are.'])
  })

  test('is the one of an id, also where another one has that for a name', async () => {
    await using rig = await startRig(postgres.current)
    const { id } = await rig.host({ name: 'one' })
    await rig.host({ name: id })
    for (const change of [
      await ask(rig, 'POST', `/${id}/cordon`),
      await ask(rig, 'PATCH', `/${id}`, { labels: { zone: 'a' } }),
      await ask(rig, 'GET', `/${id}`),
    ]) {
      assert.deepEqual([change.body.id, change.body.status], [id, 'cordoned'])
    }
  })
})

describe('labels', () => {
  test('are set and taken away one by one, with an audit row for what changed', async () => {
    await using rig = await startRig(postgres.current)
    const { id } = await rig.host()
    assert.deepEqual((await ask(rig, 'PATCH', `/${id}`, { labels: { zone: 'eu-1a', class: 'big', 'team/owner': 'ops' } })).body.labels, {
      zone: 'eu-1a',
      class: 'big',
      'team/owner': 'ops',
    })
    assert.deepEqual((await ask(rig, 'PATCH', `/${id}`, { labels: { class: null, zone: 'eu-1b' } })).body.labels, { zone: 'eu-1b', 'team/owner': 'ops' })
    await ask(rig, 'PATCH', `/${id}`, { labels: { zone: 'eu-1b', class: null } })
    await ask(rig, 'PATCH', `/${id}`, { labels: { constructor: 'x' } })
    await ask(rig, 'PATCH', `/${id}`, { labels: { constructor: null } })
    const rows = await rig.rows<{ detail: object }>("SELECT detail FROM sandglass.audit_log WHERE action = 'host.label' ORDER BY id")
    const changes: object[] = [
      { zone: 'eu-1a', class: 'big', 'team/owner': 'ops' },
      { zone: 'eu-1b', class: null },
      { constructor: 'x' },
      { constructor: null },
    ]
    assert.deepEqual(
      rows.map((row) => row.detail),
      changes,
    )
  })

  test('have limits: of a key, of a value, and of how many', async () => {
    await using rig = await startRig(postgres.current)
    const { id } = await rig.host()
    const set = async (labels: object) => await ask(rig, 'PATCH', `/${id}`, { labels })
    const many = (from: number, count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${from + index}`, 'v']))
    assert.equal((await set({ ['k'.repeat(LIMITS.hostLabelKeyCharacters)]: 'v'.repeat(LIMITS.hostLabelValueCharacters) })).status, 200)
    for (const wrong of [
      { ['k'.repeat(LIMITS.hostLabelKeyCharacters + 1)]: 'v' },
      { k: 'v'.repeat(LIMITS.hostLabelValueCharacters + 1) },
      { K: 'v' },
      { k: '' },
      { k: 1 },
      {},
    ]) {
      assert.equal((await set(wrong)).problem?.code, 'invalid_request', JSON.stringify(wrong))
    }
    assert.equal((await set(many(0, LIMITS.hostLabels - 1))).status, 200)
    const over = await set({ over: 'v' })
    assert.deepEqual([over.status, over.problem?.limit], [422, { name: 'hostLabels', value: LIMITS.hostLabels }])
    assert.equal((await set({ over: 'v', k0: null })).status, 200)
    assert.equal((await set(many(100, LIMITS.hostLabels + 1))).problem?.code, 'invalid_request')
  })
})

describe('cordon', () => {
  test('keeps new work away and leaves what runs; what waits says so, and runs after uncordon; both may be repeated', async () => {
    await using rig = await startRig(postgres.current)
    const { id } = await rig.host({ name: 'one' })
    const running = (await rig.create()).body
    for (let time = 0; time < 2; time += 1) {
      const { status, body } = await ask(rig, 'POST', '/one/cordon')
      assert.deepEqual([status, body.status, body.cordoned], [200, 'cordoned', true])
    }
    const waiting = (await rig.create({}, { wait: 0 })).body
    const reason = await until('a reason', async () => (await rig.get(waiting.id)).unschedulable_reason)
    assert.match(reason, /^no_suitable_host: .*1 host cordoned/)
    assert.equal((await rig.get(running.id)).status, 'ready')
    for (let time = 0; time < 2; time += 1) assert.equal((await ask(rig, 'POST', '/one/uncordon')).body.status, 'ready')
    await until('it to run', async () => (await rig.get(waiting.id)).status === 'ready')
    assert.deepEqual(await actions(rig), ['host.cordon', 'host.uncordon'])
    const [row] = await rig.rows<{ subject: string; tenant_id: string | null; request_id: string }>(
      "SELECT subject, tenant_id, request_id FROM sandglass.audit_log WHERE action = 'host.cordon'",
    )
    assert.deepEqual([row?.subject, row?.tenant_id], [id, null])
    assert.match(row?.request_id ?? '', /^rq/)
  })

  test('racing 100 creates by two control planes: after its answer nothing is placed or claimed there', async () => {
    const floors = [{ driver: 'fake', template: 'base', resources: SMALL, count: 30 }]
    const options = { config: { pools: { enabled: true, floors, ceiling: 0, memoryShare: 1 } }, timing: { sweepMs: 500, resendMs: 5_000 } }
    await using first = await startRig(postgres.current, options)
    await using second = await startRig(postgres.current, { ...options, twinOf: first })
    const taking = await first.host({ name: 'a', capacity: BIG_HOST, persistent: true })
    const leaving = await second.host({ name: 'b', capacity: BIG_HOST, persistent: true })
    await until('full pools', async () => (await told(first, leaving.id)).pool.target === 30 && (await told(first, taking.id)).pool.target === 30)
    const creates = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? first : second).create({ resources: SMALL }, { wait: 60 }))
    await until('some to be placed there', async () => (await assignmentsOn(first, leaving.id)) > 3)
    assert.equal((await ask(second, 'POST', '/b/cordon')).status, 200)
    // Read behind the answer: whatever comes later would be more.
    const before = await assignmentsOn(first, leaving.id)
    const answers = await Promise.all(creates)
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201])
    assert.equal(await assignmentsOn(first, leaving.id), before)
    assert.equal(before + (await assignmentsOn(first, taking.id)), 100)
    assert.ok(before < 100, `${before} were placed there`)
    await until('its pool to be given up', async () => (await told(first, leaving.id)).pool.held === 0)
    assert.equal(leaving.pools.idle(), 0)
  })
})

test('a host that registers and an operator take their locks in one order, so that neither fails for the other', async () => {
  const goOn = Promise.withResolvers<void>()
  let registered = 0
  const reach = async (point: string): Promise<void> => {
    if (point === 'register.committed') registered += 1
    if (registered === 2) await goOn.promise
  }
  await using rig = await startRig(postgres.current, { faults: { reach } })
  const host = await rig.host({ name: 'one' })
  const registering = host.register()
  await until('its epoch', () => registered === 2)
  const holder = await rig.sql.connect()
  try {
    // As operators do: the host, then its capacity.
    await holder.query('BEGIN')
    await holder.query('SELECT FROM sandglass.hosts WHERE id = $1 FOR NO KEY UPDATE', [host.id])
    goOn.resolve()
    await until('the registration to wait', () => waitForLocks(rig, 1))
    await holder.query("SET LOCAL lock_timeout = '5 s'")
    await holder.query('UPDATE sandglass.host_capacity SET cordoned = true WHERE host_id = $1', [host.id])
    await holder.query('COMMIT')
    assert.equal((await registering).epoch, 2)
  } finally {
    holder.release()
  }
  const { cordoned, capacity } = await told(rig, 'one')
  assert.deepEqual([cordoned, capacity.memory_mb], [true, 8_192])
})

describe('removal', () => {
  test('is refused while anything is assigned, with what to do', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ name: 'one', provesEnds: false })
    const { id } = (await rig.create()).body
    const wanted = await ask(rig, 'DELETE', '/one')
    assert.deepEqual([wanted.status, wanted.problem?.code], [409, 'host_in_use'])
    assert.equal(wanted.problem?.detail, 'Host one holds 1 sandbox. Drain it, and remove it when its drain says that nothing is left.')
    assert.equal((await told(rig, 'one')).status, 'ready', 'nothing has changed')
    assert.deepEqual(await host.renew(), { epoch: 1, seq: 2 })
    await rig.remove(id, 0)
    assert.match((await ask(rig, 'DELETE', '/one')).problem?.detail ?? '', /^Host one holds 1 sandbox\. Their end is ordered: /)
    await host.ended(id, 2)
    assert.equal((await ask(rig, 'DELETE', '/one')).status, 204)
    assert.deepEqual(await actions(rig), ['host.remove'])
  })

  test('takes the host from every list, and its lease; its certificate opens nothing any more; it comes back by joining anew only, cordoned and without labels', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ name: 'one' })
    await ask(rig, 'PATCH', '/one', { labels: { zone: 'a' } })
    assert.equal((await ask(rig, 'DELETE', '/one')).status, 204)
    assert.equal((await ask(rig, 'GET', '/one')).problem?.code, 'host_not_found')
    assert.equal((await ask(rig, 'DELETE', '/one')).problem?.code, 'host_not_found')
    assert.deepEqual((await rig.call<{ items: Host[] }>('GET', '/v1/hosts', { key: rig.keys.operator })).body.items, [])
    const metrics = (await rig.call<string>('GET', '/metrics', { key: '' })).body
    for (const state of ['live', 'cordoned', 'draining', 'lost']) assert.ok(metrics.includes(`sandglass_hosts{state="${state}"} 0\n`), state)
    const waiting = (await rig.create({}, { wait: 0 })).body.id
    assert.match(await until('a reason', async () => (await rig.get(waiting)).unschedulable_reason), /^no_host: /)
    await host.leave()
    for (const refused of [() => host.renew(), () => host.watch(), () => host.register(), () => host.ended(waiting, 1)]) {
      await assert.rejects(refused, /certificate_refused|certificate was revoked/)
      await host.leave()
    }
    const refusals = () =>
      rig.rows<{ subject: string }>("SELECT subject FROM sandglass.audit_log WHERE action = 'peer.refused' AND detail->>'reason' = 'revoked'")
    assert.deepEqual(await until('the audit row', async () => ((await refusals()).length > 0 ? await refusals() : undefined)), [{ subject: `host/${host.id}` }])
    await rig.joinAnew(host)
    await assert.rejects(host.renew(), { code: 'stale_epoch' })
    await assert.rejects(host.register(0), { code: 'stale_epoch' }, 'the registration of the same boot, once more')
    await host.reboot()
    const back = await told(rig, host.id)
    assert.deepEqual([back.status, back.epoch, back.labels], ['cordoned', 3, {}])
    assert.match(await until('a reason', async () => /cordoned/.exec((await rig.get(waiting)).unschedulable_reason ?? '')?.[0]), /cordoned/)
    await ask(rig, 'POST', '/one/uncordon')
    await until('it to run', async () => (await rig.get(waiting)).status === 'ready')
  })

  test('ends the open watch of a host, and gives up what its pools held when it registers anew', async () => {
    const floors = [{ driver: 'fake', template: 'base', resources: DEFAULT_RESOURCES, count: 2 }]
    await using rig = await startRig(postgres.current, { config: { pools: { enabled: true, floors, ceiling: 0, memoryShare: 1 } } })
    const host = await rig.host({ name: 'one' })
    await until('a pool', async () => (await told(rig, 'one')).pool.target === 2)
    assert.equal((await ask(rig, 'DELETE', '/one')).status, 204)
    await until('the watch to end', async () => /sandglass_internal_streams 0\n/.test((await rig.call<string>('GET', '/metrics', { key: '' })).body))
    await rig.joinAnew(host)
    await host.reboot()
    const back = await told(rig, 'one')
    assert.deepEqual([back.pool.target, back.pool.held, back.reserved.memory_mb], [0, 0, 0])
  })

  test('under way when the host registers anew: the registration finds it revoked, and the host is not held by one that is in no list', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ name: 'one' })
    const holder = await rig.sql.connect()
    try {
      await holder.query('BEGIN')
      await holder.query('SELECT FROM sandglass.host_capacity WHERE host_id = $1 FOR UPDATE', [host.id])
      const removing = ask(rig, 'DELETE', '/one')
      await until('the removal to wait, with the lease taken', () => waitForLocks(rig, 1))
      const registering = assert.rejects(host.reboot(), { code: 'certificate_refused' })
      await until('the registration to wait for the removal', () => waitForLocks(rig, 2))
      await holder.query('COMMIT')
      assert.equal((await removing).status, 204)
      await registering
    } finally {
      holder.release()
    }
    assert.equal((await ask(rig, 'GET', '/one')).problem?.code, 'host_not_found')
    const [lease] = await rig.rows<{ holder: string | null }>('SELECT holder FROM sandglass.host_leases')
    assert.deepEqual(lease, { holder: null })
  })

  test('racing creates: either it is refused, or nothing is there and nothing comes', async () => {
    await using first = await startRig(postgres.current, { timing: { sweepMs: 500 } })
    await using second = await startRig(postgres.current, { timing: { sweepMs: 500 }, twinOf: first })
    const kept = await first.host({ name: 'kept', capacity: BIG_HOST, persistent: true })
    for (let round = 0; round < 8; round += 1) {
      const name = `going-${round}`
      const going = await second.host({ name, capacity: SMALL })
      const [removed, ...created] = await Promise.all([
        ask(first, 'DELETE', `/${name}`),
        ...Array.from({ length: 4 }, (_, index) => (index % 2 === 0 ? first : second).create({ resources: SMALL }, { wait: 30 })),
      ])
      const there = created.filter((answer) => answer.body.host_id === going.id).length
      assert.deepEqual([...new Set(created.map((answer) => answer.status))], [201])
      if (removed?.status === 204) assert.deepEqual([there, await assignmentsOn(first, going.id)], [0, 0], name)
      else assert.deepEqual([removed?.problem?.code, (await assignmentsOn(first, going.id)) > 0], ['host_in_use', true], name)
    }
    assert.ok(kept.running.size > 0)
  })
})
