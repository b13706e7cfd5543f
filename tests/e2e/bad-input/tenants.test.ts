/** Someone else's sandboxes, keys with too small a role, and keys that are revoked while they are used. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CLOSE_CODE, LIMITS } from '@sandglass/contract'
import { type CreatedApiKey, Sandbox, type Sandglass, SandglassError } from '@sandglass/sdk'
import { until, within } from '../bounds.ts'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import { uniqueName } from '../fixture.ts'
import type { Installation } from '../installation.ts'
import { refused } from '../subject/coded.ts'
import { rawHttp } from '../subject/raw-http.ts'
import { assertCostNothing, costsOf } from './costs.ts'
import { assertProblem } from './problem.ts'
import { HandSocket } from './socket.ts'

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

let installation: Installation
let mine: Sandbox
let other: CreatedApiKey
let theirs: Sandglass
before(async () => {
  installation = await sharedInstallation()
  const client = installation.client()
  mine = await Sandbox.create({ client, name: uniqueName(), ttlSeconds: 900 })
  other = await client.apiKeys.create({ name: 'other', role: 'owner', tenant: uniqueName() })
  theirs = installation.client(other.key)
})
afterTests(async () => {
  await mine?.delete()
  if (other !== undefined) await installation.client().apiKeys.revoke(other.id)
})

describe('a key of another tenant', () => {
  test('sees none of our sandboxes, by no way', async () => {
    const costs = await costsOf(installation, mine)
    const listed: string[] = []
    for await (const { id } of Sandbox.list({ client: theirs, includeEnded: true })) listed.push(id)
    assert.deepEqual(listed, [])
    await refused('reading it', 'sandbox_not_found', Sandbox.get(mine.id, { client: theirs }))
    await refused('reading it by name', 'sandbox_not_found', Sandbox.get(mine.name ?? '', { client: theirs }))
    const call = (method: string, url: string, path: string, body?: object) =>
      rawHttp(url, {
        method,
        path: `/v1/sandboxes/${mine.id}${path}`,
        headers: { authorization: `Bearer ${other.key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    const api = installation.apiUrl
    const gateway = mine.resource.gateway_url
    assertProblem('deleting it', await call('DELETE', api, ''), 'sandbox_not_found')
    assertProblem('extending it', await call('POST', api, '/extend', { ttl_seconds: 600 }), 'sandbox_not_found')
    assertProblem('changing it', await call('PATCH', api, '', { metadata: {} }), 'sandbox_not_found')
    assertProblem('running in it', await call('POST', gateway, '/exec', { argv: ['true'] }), 'sandbox_not_found')
    assertProblem('its files', await call('GET', gateway, '/files?path=/etc/passwd'), 'sandbox_not_found')
    assertProblem('its processes', await call('GET', gateway, '/processes'), 'sandbox_not_found')
    assertProblem('its archive', await call('GET', gateway, '/files/archive?path=/etc'), 'sandbox_not_found')
    await using socket = new HandSocket(`${gateway}/v1/sandboxes/${mine.id}/terminal?cols=80&rows=24`, other.key)
    assert.equal(await socket.opened(), false, 'a terminal of ours is not opened for them')
    await assertCostNothing(installation, costs, mine)
  })

  test('may use the same names, and the two are apart', async () => {
    const name = mine.name ?? ''
    const twin = await Sandbox.create({ client: theirs, name, ttlSeconds: 600, resources: { vcpu: 0.1, memoryMb: 128 } })
    try {
      assert.notEqual(twin.id, mine.id)
      assert.equal((await Sandbox.get(name, { client: theirs })).id, twin.id)
      assert.equal((await Sandbox.get(name, { client: installation.client() })).id, mine.id)
    } finally {
      await twin.delete()
    }
  })

  test('may not see hosts, and not make keys for others', async () => {
    await refused('hosts', 'forbidden', all(theirs.hosts.list()))
    await refused('a key for another tenant', 'forbidden', theirs.apiKeys.create({ name: 'x', tenant: 'default' }))
    await refused('an operator key', 'forbidden', theirs.apiKeys.create({ name: 'x', role: 'operator' }))
  })
})

describe('roles', () => {
  const keys: CreatedApiKey[] = []
  const keyOf = async (role: 'viewer' | 'member'): Promise<CreatedApiKey> => {
    const key = await installation.client().apiKeys.create({ name: role, role })
    keys.push(key)
    return key
  }
  after(async () => {
    for (const { id } of keys) await installation.client().apiKeys.revoke(id)
  })

  test('a viewer reads and changes nothing', async () => {
    const client = installation.client((await keyOf('viewer')).key)
    const seen = await Sandbox.get(mine.id, { client })
    const costs = await costsOf(installation, mine)
    await refused('creating', 'forbidden', Sandbox.create({ client }))
    await refused('deleting', 'forbidden', seen.delete())
    await refused('extending', 'forbidden', seen.extend(600))
    await refused('running', 'forbidden', seen.exec(['true']))
    await refused('writing', 'forbidden', seen.files.write('/tmp/x', 'x'))
    await refused('a terminal', 'forbidden', seen.terminal())
    assert.ok((await seen.files.readText('/etc/passwd')).length > 0, 'a viewer reads files')
    await assertCostNothing(installation, costs, mine)
  })

  test('a member uses sandboxes and makes no keys', async () => {
    const client = installation.client((await keyOf('member')).key)
    assert.equal((await (await Sandbox.get(mine.id, { client })).exec(['echo', 'hi'])).stdout, 'hi\n')
    await refused('a key', 'forbidden', client.apiKeys.create({ name: 'x' }))
    await refused('a list of keys', 'forbidden', all(client.apiKeys.list()))
  })
})

describe('a key that is revoked', () => {
  test('is refused, and its live sessions close within five seconds', async () => {
    const admin = installation.client()
    const key = await admin.apiKeys.create({ name: 'short-lived', role: 'member' })
    await using socket = new HandSocket(`${mine.resource.gateway_url}/v1/sandboxes/${mine.id}/exec`, key.key)
    assert.equal(await socket.opened(), true)
    socket.frame({ channel: 'status', status: { type: 'start', process: { argv: ['sleep', '1000'] }, credit_bytes: 65_536 } })
    await until(30_000, 'the start', () => socket.status('started'))
    const client = installation.client(key.key)
    const sandbox = await Sandbox.get(mine.id, { client })
    const follower = (async () => {
      const process = (await sandbox.processes()).find((candidate) => candidate.running)
      if (process === undefined) assert.fail('it runs')
      for await (const _ of process.output({ follow: true }));
    })()
    follower.catch(() => undefined)

    const began = performance.now()
    await admin.apiKeys.revoke(key.id)
    const { code } = await within(LIMITS.revocationMs, 'the end of the session of a revoked key', socket.closed)
    assert.ok(
      [CLOSE_CODE.revoked, CLOSE_CODE.unauthenticated].some((allowed) => allowed === code),
      `it closes with ${code}`,
    )
    await within(LIMITS.revocationMs, 'the end of a follower with a revoked key', assert.rejects(follower))
    assert.ok(performance.now() - began < 2 * LIMITS.revocationMs)
    await until(LIMITS.revocationMs, 'the key is refused at the gateway', async () => {
      try {
        await sandbox.exec(['true'])
        return false
      } catch (error) {
        return error instanceof SandglassError && error.code === 'unauthenticated'
      }
    })
    await refused('the API', 'unauthenticated', Sandbox.get(mine.id, { client }))
    // The process belongs to the sandbox, not to the key.
    for (const process of await mine.processes()) if (process.running) await process.kill()
  })

  test('revoking twice is fine, and an unknown one is told', async () => {
    const admin = installation.client()
    const key = await admin.apiKeys.create({ name: 'twice' })
    await admin.apiKeys.revoke(key.id)
    await admin.apiKeys.revoke(key.id)
    await refused('an unknown key', 'api_key_not_found', admin.apiKeys.revoke('akaaaaaaaaaaaaaaaa'))
  })
})
