/** The listener for machines: who is refused there, what each is told, and that the audit log knows. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:https'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { type ErrorCode, LIMITS, newHostId, parseProblem, type RefusalReason } from '@sandglass/contract'
import { type KeyAndCertificate, OwnIdentity, TLS_CONTEXT } from '@sandglass/identity'
import { join, newKeyPem } from '@sandglass/identity/join'
import { MachineClient, SimulatedHost, TEST_AUTHORITY, TestAuthority, until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const HOUR_MS = 3_600_000
const HOST = newHostId(randomBytes)
const stranger = new TestAuthority()

/** Shows whatever it is given; looks at nothing of the other side. */
function ask(rig: Rig, path: string, own: Partial<KeyAndCertificate>, body?: unknown): Promise<ErrorCode | number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<ErrorCode | number | undefined>()
  const text = body === undefined ? undefined : JSON.stringify(body)
  const asked = request(new URL(path, rig.internalUrl), {
    ...TLS_CONTEXT,
    ...own,
    agent: false,
    rejectUnauthorized: false,
    method: text === undefined ? 'GET' : 'POST',
    headers: text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
  })
  asked.on('error', reject)
  asked.once('response', (response) => {
    if (response.statusCode === 200) {
      resolve(200)
      response.destroy()
      return
    }
    json(response).then((value) => resolve(parseProblem(value)?.code ?? response.statusCode), reject)
  })
  asked.end(text)
  return promise
}

const renewal = { epoch: 1, boot_id: 'a-boot-id' }
const report = { epoch: 1, items: [] }
/** Every question of a host and of a gateway. */
const OF_HOST: [path: string, body?: unknown][] = [
  [`/internal/v1/hosts/${HOST}/renew`, renewal],
  [`/internal/v1/hosts/${HOST}/reports`, report],
  [`/internal/v1/hosts/${HOST}/watch?epoch=1`],
]
const OF_GATEWAY: [path: string, body?: unknown][] = [['/internal/v1/access', {}], ['/internal/v1/feed']]
const OF_BOTH: [path: string, body?: unknown][] = [
  ['/internal/v1/certificates', {}],
  ['/internal/v1/refusals', { items: [] }],
]

const rows = (rig: Rig) =>
  rig.rows<{ reason: RefusalReason; subject: string; count: number }>(
    `SELECT detail->>'reason' AS reason, subject, sum((detail->>'count')::integer)::integer AS count
     FROM sandglass.audit_log WHERE action = 'peer.refused' GROUP BY 1, 2 ORDER BY 1, 2`,
  )

type Case = {
  readonly what: string
  readonly own: Partial<KeyAndCertificate>
  readonly reason: RefusalReason
  readonly subject: string
  readonly paths: typeof OF_HOST
}
const host = { role: 'host', name: HOST } as const
const gateway = { role: 'gateway', name: 'one' } as const
const other = newHostId(randomBytes)
const everything = [...OF_HOST, ...OF_GATEWAY, ...OF_BOTH]
const past = Date.now() - LIMITS.certificateLifeMs - LIMITS.certificateToleranceMs - HOUR_MS
const future = Date.now() + LIMITS.certificateToleranceMs + HOUR_MS

const CASES: readonly Case[] = [
  { what: 'no certificate', own: {}, reason: 'no_certificate', subject: 'nobody', paths: everything },
  { what: 'a host of another CA', own: stranger.pair(host), reason: 'wrong_ca', subject: `host/${HOST}`, paths: [...OF_HOST, ...OF_BOTH] },
  { what: 'a gateway of another CA', own: stranger.pair(gateway), reason: 'wrong_ca', subject: 'gateway/one', paths: [...OF_GATEWAY, ...OF_BOTH] },
  { what: 'an expired host', own: TEST_AUTHORITY.pair({ ...host, atMs: past }), reason: 'expired', subject: `host/${HOST}`, paths: [...OF_HOST, ...OF_BOTH] },
  {
    what: 'an expired gateway',
    own: TEST_AUTHORITY.pair({ ...gateway, atMs: past }),
    reason: 'expired',
    subject: 'gateway/one',
    paths: [...OF_GATEWAY, ...OF_BOTH],
  },
  // A forgery that has expired must not pass for a certificate that has.
  { what: 'an expired host of another CA', own: stranger.pair({ ...host, atMs: past }), reason: 'wrong_ca', subject: `host/${HOST}`, paths: OF_HOST },
  { what: 'a host of the future', own: TEST_AUTHORITY.pair({ ...host, atMs: future }), reason: 'not_yet_valid', subject: `host/${HOST}`, paths: OF_HOST },
  { what: 'a host of another region', own: TEST_AUTHORITY.pair({ ...host, region: 'x1' }), reason: 'not_an_identity', subject: `host/${HOST}`, paths: OF_HOST },
  { what: 'another host', own: TEST_AUTHORITY.pair({ role: 'host', name: other }), reason: 'wrong_name', subject: `host/${other}`, paths: OF_HOST },
  { what: 'a gateway on what is of hosts', own: TEST_AUTHORITY.pair(gateway), reason: 'wrong_role', subject: 'gateway/one', paths: OF_HOST },
  { what: 'a host on what is of gateways', own: TEST_AUTHORITY.pair(host), reason: 'wrong_role', subject: `host/${HOST}`, paths: OF_GATEWAY },
  {
    what: 'a control plane',
    own: TEST_AUTHORITY.pair({ role: 'control-plane', name: 'twin' }),
    reason: 'wrong_role',
    subject: 'control-plane/twin',
    paths: everything,
  },
]

test('who is refused, is told why, and stands in the audit log', async (suite) => {
  for (const { what, own, reason, subject, paths } of CASES) {
    await suite.test(what, async () => {
      await using rig = await startRig(postgres.current)
      const expected = reason === 'no_certificate' ? 'certificate_required' : 'certificate_refused'
      for (const [path, body] of paths) assert.equal(await ask(rig, path, own, body), expected, path)
      await until('the first row', async () => (await rows(rig)).length > 0)
      await rig.stop()
      assert.deepEqual(await rows(rig), [{ reason, subject, count: paths.length }])
      assert.equal((await rig.rows('SELECT 1 FROM sandglass.hosts')).length, 0)
    })
  }
})

test('of who shows no certificate no body is read', async () => {
  await using rig = await startRig(postgres.current)
  for (const [path] of everything.filter(([, body]) => body !== undefined)) {
    const socket = connect({ ...TLS_CONTEXT, host: '127.0.0.1', port: Number(new URL(rig.internalUrl).port), rejectUnauthorized: false })
    // All of the head, and of the body nothing: who waits for it never answers.
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n`)
    const [head] = await once(socket, 'data', { signal: AbortSignal.timeout(5_000) })
    assert.match(String(head), /^HTTP\/1\.1 401 /, path)
    socket.destroy()
  }
})

test('a host registers as nobody but itself', async () => {
  await using rig = await startRig(postgres.current)
  const real = await rig.host()
  const thief = new MachineClient(rig.internalUrl, TEST_AUTHORITY.identity({ role: 'host', name: other }))
  const body = {
    host_id: real.id,
    name: 'x',
    boot_id: 'another-boot',
    expected_epoch: 1,
    version: '0',
    drivers: [],
    templates: [],
    data_plane_url: 'https://127.0.0.1:1',
  }
  await assert.rejects(thief.post('/internal/v1/hosts/register', { ...body, capacity: { vcpu: 1, memory_mb: 1, disk_gb: 1 } }), { code: 'certificate_refused' })
  assert.equal((await real.renew()).epoch, 1)
})

test('a clock that is hours away costs no lease, on whichever side it is', async () => {
  await using rig = await startRig(postgres.current)
  // To the control plane a certificate of a skewed issuer looks as its own does to a skewed control plane.
  for (const hours of [-23, -12, 0, 12, 23]) {
    const skewed = new SimulatedHost({
      url: rig.internalUrl,
      identity: (name) => {
        const { key, cert } = TEST_AUTHORITY.pair({ role: 'host', name, atMs: Date.now() + hours * HOUR_MS })
        return new OwnIdentity(key, { certificatePem: cert, caPems: [TEST_AUTHORITY.authority.certificatePem] }, () => Date.now() + hours * HOUR_MS)
      },
    })
    await skewed.join()
    assert.equal((await skewed.renew()).epoch, 1, `${hours} h`)
    await skewed.leave()
  }
})

test('a machine trusts nobody who is no control plane of its CA', async () => {
  await using rig = await startRig(postgres.current)
  const wrong = new MachineClient(rig.internalUrl, stranger.identity({ role: 'host', name: HOST }))
  await assert.rejects(wrong.post('/internal/v1/certificates', {}), { code: 'certificate_refused' })
  await assert.rejects(wrong.open('/internal/v1/feed', new AbortController().signal), { code: 'certificate_refused' })
})

test('a certificate is renewed by itself, for the same key; not once the identity is another key’s or revoked', async () => {
  await using rig = await startRig(postgres.current)
  const wallMs = () => Date.now()
  const joinAs = async (role: 'host' | 'gateway', name: string): Promise<MachineClient> => {
    const { body } = await rig.call<{ token: string }>('POST', '/v1/join-tokens', { key: rig.keys.operator, body: { role } })
    const keyPem = newKeyPem()
    const issued = await join({ controlUrl: rig.internalUrl, token: body.token, name, keyPem, wallMs })
    return new MachineClient(rig.internalUrl, new OwnIdentity(keyPem, { certificatePem: issued.certificate_pem, caPems: issued.ca_pem }, wallMs))
  }
  const first = await joinAs('gateway', 'one')
  await first.post('/internal/v1/certificates', {})
  const [renewed] = await rig.rows<{ renewed: boolean }>('SELECT renewed_at IS NOT NULL AS renewed FROM sandglass.identities')
  assert.equal(renewed?.renewed, true)
  // A gateway of the same name takes its place.
  const second = await joinAs('gateway', 'one')
  await assert.rejects(first.post('/internal/v1/certificates', {}), { code: 'certificate_refused' })
  await second.post('/internal/v1/certificates', {})
  assert.equal((await rig.rows("SELECT 1 FROM sandglass.audit_log WHERE action = 'certificate.renew'")).length, 2)
})

test('what is open ends when its identity is revoked, also when nothing tells of that', async () => {
  await using rig = await startRig(postgres.current, { timing: { heartbeatMs: 100 } })
  const reader = new MachineClient(rig.internalUrl, TEST_AUTHORITY.identity(gateway))
  const feed = await reader.open('/internal/v1/feed', AbortSignal.timeout(10_000))
  const ended = once(feed.resume(), 'end', { signal: AbortSignal.timeout(10_000) })
  await rig.rows("INSERT INTO sandglass.identities (role, name, revoked_at) VALUES ('gateway', 'one', clock_timestamp())")
  await ended
  await assert.rejects(reader.open('/internal/v1/feed', AbortSignal.timeout(5_000)), { code: 'certificate_refused' })
})

test('refusals of hosts and gateways are told, and rows about them are bounded', async () => {
  await using rig = await startRig(postgres.current)
  const teller = new MachineClient(rig.internalUrl, TEST_AUTHORITY.identity(host))
  const item = (index: number) => ({ reason: 'wrong_role', claimed: `host/${index}`, address: '10.0.0.1', count: 3 })
  for (let begin = 0; begin < 4; begin += 1) {
    await teller.post('/internal/v1/refusals', { items: Array.from({ length: 40 }, (_, index) => item(begin * 40 + index)) }).catch(() => undefined)
  }
  await rig.stop()
  const told = await rig.rows<{ actor_id: string; count: number }>(
    "SELECT actor_id, (detail->>'count')::integer AS count FROM sandglass.audit_log WHERE action = 'peer.refused'",
  )
  assert.equal(told.length, LIMITS.refusalRowsPerMinute + 1)
  assert.equal(
    told.reduce((sum, { count }) => sum + count, 0),
    160 * 3,
  )
  assert.equal(told.filter(({ actor_id }) => actor_id === HOST).length, LIMITS.refusalRowsPerMinute)
})
