/** Floods at the real server: who comes too often is told when to come back, and one tenant's flood is not another one's wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'
import { makeMutant } from './mutant.ts'

const postgres = usePostgres()

async function admitted(rig: Rig, state: 'running' | 'queued'): Promise<number> {
  const { body } = await rig.call<string>('GET', '/metrics', { key: '' })
  return Number(new RegExp(`^sandglass_api_requests\\{state="${state}"\\} (\\d+)$`, 'm').exec(body)?.[1])
}

test('each answer says what the rate is and what is left of it', async () => {
  await using rig = await startRig(postgres.current)
  const answer = await rig.call('GET', '/v1/sandboxes')
  const { apiRateKeyRequests: key, apiRateTenantRequests: tenant, apiRateWindowSeconds: window } = LIMITS
  assert.equal(answer.headers.get('ratelimit-policy'), `"key";q=${key};w=${window}, "tenant";q=${tenant};w=${window}`)
  assert.match(answer.headers.get('ratelimit') ?? '', /^"key";r=4999;t=1, "tenant";r=9999;t=1$/)
  // What was refused for another reason has cost a token too; what nobody sent has none.
  assert.match((await rig.call('GET', '/v1/sandboxes/none')).headers.get('ratelimit') ?? '', /^"key";r=499[89];t=1/)
  assert.equal((await rig.call('GET', '/v1/sandboxes', { key: '' })).headers.get('ratelimit'), null)
})

test('past its rate a key is refused with the time to come back, and another tenant is not', async () => {
  await using rig = await startRig(postgres.current, { config: { rates: { keyRequests: 5, tenantRequests: 8, windowSeconds: 3_600 } } })
  const statuses = async (key: string, count: number) => {
    const answers = await Promise.all(Array.from({ length: count }, () => rig.call('GET', '/v1/sandboxes', { key })))
    return answers.map((answer) => answer.status).toSorted()
  }
  assert.deepEqual(await statuses(rig.keys.member, 7), [200, 200, 200, 200, 200, 429, 429])
  const refused = await rig.call('GET', '/v1/sandboxes')
  assert.equal(refused.problem?.code, 'rate_limited')
  assert.deepEqual(refused.problem?.limit, { name: 'apiRateKeyRequests', value: 5 })
  // One token comes back in 720 s, of which some have passed.
  assert.match(refused.headers.get('retry-after') ?? '', /^(?:720|7[01]\d|6\d\d)$/)
  assert.match(refused.headers.get('ratelimit') ?? '', /^"key";r=0;t=3[56]\d\d, "tenant";r=3;t=\d+$/)
  assert.deepEqual(await statuses(rig.keys.viewer, 4), [200, 200, 200, 429])
  assert.equal((await rig.call('GET', '/v1/sandboxes', { key: rig.keys.owner })).problem?.limit?.name, 'apiRateTenantRequests')
  // A key that is not one is told so, whatever its rate.
  assert.equal((await rig.call('GET', '/v1/sandboxes', { key: 'x' })).status, 401)
})

/** The flood hangs until it is let go, so whoever waits behind it waits for ever. */
const BEHIND_MS = 8_000

/** The default tenant's creates hang on its quota, as on a slow database, more of them than there are places and connections. */
async function floodAndAskFromElsewhere(rig: Rig): Promise<void> {
  const acme = await rig.newKey('acme', 'member')
  // Both keys have been here before.
  assert.equal((await rig.call('GET', '/v1/sandboxes', { key: acme })).status, 200)
  assert.equal((await rig.call('GET', '/v1/sandboxes')).status, 200)
  const client = await rig.sql.connect()
  await client.query('BEGIN')
  await client.query("SELECT * FROM sandglass.quotas WHERE tenant_id = (SELECT id FROM sandglass.tenants WHERE name = 'default') FOR UPDATE")
  const flood = Promise.all(Array.from({ length: 300 }, () => rig.create({}, { wait: 0 })))
  try {
    await until('the flood to wait', async () => (await admitted(rig, 'queued')) >= 250)
    const asked = Promise.all([rig.create({}, { wait: 0, key: acme }), rig.call('GET', '/v1/sandboxes', { key: acme })])
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error('the other tenant waits behind the flood')), BEHIND_MS)
    const answers = await Promise.race([asked, late.promise]).finally(() => clearTimeout(timer))
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [202, 200],
    )
  } finally {
    await client.query('ROLLBACK')
    client.release()
    const statuses = new Map(Object.entries(Object.groupBy(await flood, (answer) => String(answer.status))).map(([status, all]) => [status, all?.length]))
    assert.deepEqual([...statuses], [['202', 300]])
  }
}

test('one tenant’s flood does not hold up another one’s single request', async () => {
  await using rig = await startRig(postgres.current)
  await floodAndAskFromElsewhere(rig)
})

for (const [name, mutation] of Object.entries({
  'all tenants stand in one queue': { file: 'admission/admission.ts', replace: 'return tenant ??', by: "return 'everyone' + '' ??" },
  'a tenant may have all places': { file: 'admission/admission.ts', replace: 'LIMITS.apiRequestsRunningPerTenant', by: 'LIMITS.apiRequestsQueued' },
})) {
  test(`it does when ${name}`, async () => {
    using mutant = makeMutant([mutation])
    await using rig = await startRig(postgres.current, { source: mutant.source })
    await assert.rejects(floodAndAskFromElsewhere(rig))
  })
}

test('200 creates at once from one key: none is refused, and those that wait for a start hold no place', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host({ starts: ['hang'], capacity: { vcpu: 1_000, memory_mb: 1_000_000, disk_gb: 10_000 } })
  const creates = Promise.all(Array.from({ length: 200 }, () => rig.create({}, { wait: 10 })))
  await until('all to be starting', () => host.starts.length >= 200)
  // 200 requests wait for their sandbox, and no place is taken by them: there is one for another request of the same key.
  await until('no place to be taken', async () => (await admitted(rig, 'running')) === 0)
  assert.equal((await rig.call('GET', '/v1/sandboxes')).status, 200)
  assert.deepEqual([...new Set((await creates).map((answer) => answer.status))], [202])
})
