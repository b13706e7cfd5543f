/** API keys: who may make which, when they end, and how gateways hear of it. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { type Access, AccessSchema, CodedError, type CreatedApiKey, type FeedEvent, FeedEventSchema, parserOf } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const events = parserOf(FeedEventSchema)
const accesses = parserOf(AccessSchema)
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const make = async (rig: Rig, key: string, body: object) => await rig.call<CreatedApiKey>('POST', '/v1/api-keys', { key, body })
const access = async (rig: Rig, key: string, sandbox_id: string): Promise<Access> =>
  accesses.parse(await rig.gateway.post('/internal/v1/access', { key_sha256: sha256(key), sandbox_id }))
const refused = async (asked: Promise<Access>): Promise<string | undefined> =>
  await asked.then(
    () => undefined,
    (error: unknown) => (error instanceof CodedError ? error.code : String(error)),
  )

describe('keys', () => {
  test('nobody gives away more than they have; only operators name a tenant', async () => {
    await using rig = await startRig(postgres.current)
    assert.equal((await make(rig, rig.keys.owner, { name: 'x', role: 'operator' })).status, 403)
    assert.equal((await make(rig, rig.keys.owner, { name: 'x', tenant: 'acme' })).status, 403)
    const acme = await make(rig, rig.keys.operator, { name: 'x', role: 'owner', tenant: 'acme' })
    assert.equal(acme.status, 201)
    const again = await make(rig, rig.keys.operator, { name: 'y', role: 'owner', tenant: 'acme' })
    assert.equal(again.body.tenant_id, acme.body.tenant_id)
    assert.equal((await make(rig, acme.body.key, { name: 'z' })).body.role, 'member')
  })

  test('a key ends at its time, and at once when it is revoked', async () => {
    await using rig = await startRig(postgres.current)
    const { body } = await make(rig, rig.keys.owner, { name: 'x', role: 'viewer', expires_in_seconds: 60 })
    assert.equal((await rig.call('GET', '/v1/sandboxes', { key: body.key })).status, 200)
    await rig.rows('UPDATE sandglass.api_keys SET expires_at = clock_timestamp() WHERE id = $1', [body.id])
    assert.equal((await rig.call('GET', '/v1/sandboxes', { key: body.key })).status, 401)
    const second = (await make(rig, rig.keys.owner, { name: 'y', role: 'viewer' })).body
    assert.equal((await rig.call('DELETE', `/v1/api-keys/${second.id}`, { key: rig.keys.owner })).status, 204)
    assert.equal((await rig.call('GET', '/v1/sandboxes', { key: second.key })).status, 401)
    assert.equal((await rig.call('DELETE', `/v1/api-keys/${second.id}`, { key: rig.keys.owner })).status, 204)
  })
})

describe('gateways', () => {
  test('are told who may reach which runtime, and nothing of someone else’s', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const pending = await rig.create({}, { wait: 10 })
    const body = await access(rig, rig.keys.viewer, pending.body.id)
    assert.equal(body.role, 'viewer')
    assert.equal(body.status, 'ready')
    assert.deepEqual({ ...body.route, valid_for_ms: 0 }, { host_id: host.id, data_plane_url: 'http://127.0.0.1:1', generation: 1, epoch: 1, valid_for_ms: 0 })
    assert.ok((body.route?.valid_for_ms ?? 0) > 20_000)
    assert.equal(await refused(access(rig, await rig.newKey('acme'), pending.body.id)), 'sandbox_not_found')
    assert.equal(await refused(access(rig, 'sgk_x', pending.body.id)), 'unauthenticated')
    await rig.remove(pending.body.id)
    const gone = await access(rig, rig.keys.viewer, pending.body.id)
    assert.deepEqual({ status: gone.status, route: gone.route }, { status: 'terminated', route: null })
  })

  test('hear of revoked keys and changed sandboxes; the feed ends when the process does', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const heard: FeedEvent[] = []
    const response = await rig.gateway.open('/internal/v1/feed', new AbortController().signal)
    const reading = (async () => {
      let rest = ''
      for await (const text of response) {
        const lines = (rest + String(text)).split('\n')
        rest = lines.pop() ?? ''
        heard.push(...lines.map((line) => events.parse(JSON.parse(line))))
      }
    })()
    await until('the first heartbeat', () => heard[0])
    const { body } = await rig.create()
    await rig.remove(body.id)
    const key = (await make(rig, rig.keys.owner, { name: 'x' })).body
    await rig.call('DELETE', `/v1/api-keys/${key.id}`, { key: rig.keys.owner })
    await until('the revocation', () => heard.find((event) => event.type === 'key_revoked' && event.api_key_id === key.id))
    const generations = heard.flatMap((event) => (event.type === 'sandbox_changed' && event.sandbox_id === body.id ? [event.generation] : []))
    assert.equal(generations.at(-1), 2)
    await rig.stop()
    await reading
  })

  test('hear of a host that another control plane fences, before what it held is released', async () => {
    const timing = { leaseMs: 1_000, fenceGraceMs: 300, fencePollMs: 3_600_000, sweepMs: 3_600_000 }
    await using rig = await startRig(postgres.current, { timing })
    await rig.settled()
    const host = await rig.host()
    const controller = new AbortController()
    const response = await rig.gateway.open('/internal/v1/feed', controller.signal)
    await using _twin = await startRig(postgres.current, { timing: { ...timing, fencePollMs: 50 }, twinOf: rig })
    let heard = ''
    for await (const text of response) {
      heard += String(text)
      if (heard.includes('host_fenced')) break
    }
    const fenced = heard.split('\n').find((line) => line.includes('host_fenced')) ?? ''
    assert.deepEqual(events.parse(JSON.parse(fenced)), { type: 'host_fenced', host_id: host.id, epoch: 2 })
    controller.abort()
  })
})
