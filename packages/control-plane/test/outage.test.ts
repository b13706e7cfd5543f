/** The database goes away and comes back; secrets stay out of the log meanwhile and always. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@sandglass/testkit'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

test('while Postgres is away mutations are answered 503 with Retry-After; when it is back everything goes on by itself', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body } = await rig.create()
  await until('it to listen', async () => (await rig.call('GET', '/readyz')).status === 200)
  await postgres.current.crash()
  const refused = await rig.create({}, { idempotencyKey: 'k' })
  assert.equal(refused.status, 503)
  assert.equal(refused.problem?.code, 'unavailable')
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.equal((await rig.remove(body.id)).status, 503)
  assert.equal((await rig.call('GET', '/readyz')).status, 503)
  assert.equal((await rig.call('GET', '/healthz')).status, 200)
  await assert.rejects(host.renew(), { code: 'unavailable' })
  await postgres.current.restart()
  await until('it to be ready', async () => (await rig.call('GET', '/readyz')).status === 200)
  const created = await rig.create({}, { idempotencyKey: 'k' })
  assert.equal(created.status, 201)
  assert.equal((await rig.get(body.id)).status, 'ready')
  assert.equal((await rig.remove(body.id)).status, 204)
})

test('the log has a line for each request and never a secret', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  const secret = 'hunter2-hunter2'
  const { body } = await rig.create({ env: { PASSWORD: secret } })
  await rig.create({ env: { PASSWORD: secret }, name: 'No Name' })
  await rig.call('POST', '/v1/sandboxes', { body: `{"env": {"PASSWORD": "${secret}"` })
  await rig.remove(body.id)
  const made = await rig.newKey('acme')
  const log = rig.logLines.join('')
  assert.match(log, /"route":"\/v1\/sandboxes","status":201/)
  for (const hidden of [secret, made, ...Object.values(rig.keys)]) assert.ok(!log.includes(hidden))
  const rows = JSON.stringify([
    await rig.rows('SELECT * FROM sandglass.audit_log'),
    await rig.rows('SELECT * FROM sandglass.events'),
    await rig.rows('SELECT * FROM sandglass.api_keys'),
  ])
  for (const hidden of [secret, made]) assert.ok(!rows.includes(hidden))
})

test('every mutation leaves its audit row', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  const { body } = await rig.create()
  await rig.call('PATCH', `/v1/sandboxes/${body.id}`, { body: { name: 'x' } })
  await rig.call('POST', `/v1/sandboxes/${body.id}/extend`, { body: { ttl_seconds: 60 } })
  await rig.remove(body.id)
  const rows = await rig.rows<{ action: string; actor_type: string }>(
    "SELECT action, actor_type FROM sandglass.audit_log WHERE action LIKE 'sandbox.%' OR action LIKE 'host.%' ORDER BY id",
  )
  assert.deepEqual(rows, [
    { action: 'host.register', actor_type: 'host' },
    { action: 'sandbox.create', actor_type: 'key' },
    { action: 'sandbox.update', actor_type: 'key' },
    { action: 'sandbox.extend', actor_type: 'key' },
    { action: 'sandbox.delete', actor_type: 'key' },
  ])
})
