/** How machines come in: tokens, certificates, and what is refused on the way; the audit log tells it all. */
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import { Agent } from 'node:https'
import { test } from 'node:test'
import { CodedError, type CreatedJoinToken, type ErrorCode, joinProofText, LIMITS, newHostId } from '@sandglass/contract'
import { fingerprintOf, jsonPost, OwnIdentity } from '@sandglass/identity'
import { join, newKeyPem } from '@sandglass/identity/join'
import { TEST_AUTHORITY, TestAuthority, until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const wallMs = () => Date.now()
const publicPem = (keyPem: string): string => createPublicKey(keyPem).export({ type: 'spki', format: 'pem' }).toString()
const newId = () => newHostId(randomBytes)

const tokenOf = async (rig: Rig, body: object = {}): Promise<CreatedJoinToken> => {
  const { status, body: made } = await rig.call<CreatedJoinToken>('POST', '/v1/join-tokens', { key: rig.keys.operator, body })
  assert.equal(status, 201)
  return made
}

const refusedWith = (code: ErrorCode) => (error: unknown) => error instanceof CodedError && error.code === code

const refusals = (rig: Rig, reason: string) =>
  rig.rows<{ actor_id: string; subject: string; detail: { count: number; channel: string } }>(
    `SELECT actor_id, subject, detail FROM sandglass.audit_log WHERE action = 'peer.refused' AND detail->>'reason' = $1 ORDER BY at`,
    [reason],
  )

test('a token lets a machine in: a certificate with its one SPIFFE id, by the CA whose fingerprint is in the token', async () => {
  await using rig = await startRig(postgres.current)
  const { token, join_url, ...shown } = await tokenOf(rig, { labels: { zone: 'a' } })
  assert.equal(join_url, rig.internalUrl)
  assert.equal(shown.status, 'open')
  const [name, keyPem] = [newId(), newKeyPem()]
  const issued = await join({ controlUrl: join_url, token, name, keyPem, wallMs })
  const certificate = new X509Certificate(issued.certificate_pem)
  assert.equal(certificate.subjectAltName, `URI:spiffe://sandglass/l1/host/${name}`)
  assert.ok(certificate.checkPrivateKey(new OwnIdentity(keyPem, { certificatePem: issued.certificate_pem, caPems: issued.ca_pem }, wallMs).privateKey))
  assert.equal(fingerprintOf(new X509Certificate(issued.ca_pem[0] ?? '').publicKey), token.split('.')[1])
  const lifeMs = certificate.validToDate.getTime() - Date.now()
  assert.ok(lifeMs > LIMITS.certificateLifeMs - 60_000 && lifeMs <= LIMITS.certificateLifeMs + 1_000, `lives ${lifeMs} ms`)
  assert.equal(issued.renew_after_ms, LIMITS.certificateLifeMs / 2)

  const [row] = (await rig.call<{ items: CreatedJoinToken[] }>('GET', '/v1/join-tokens', { key: rig.keys.operator })).body.items
  assert.deepEqual([row?.status, row?.used_by, row?.labels], ['used', name, { zone: 'a' }])
  const audits = await rig.rows<{ action: string; subject: string }>(
    `SELECT action, subject FROM sandglass.audit_log WHERE action ~ '^(join_token|machine)' ORDER BY at`,
  )
  assert.deepEqual(
    audits.map(({ action }) => action),
    ['join_token.create', 'machine.join'],
  )
  assert.equal(audits[1]?.subject, name)
  const stored = JSON.stringify(await rig.rows('SELECT * FROM sandglass.join_tokens')) + rig.logLines.join('')
  assert.ok(!stored.includes(token.slice(0, 20)), 'the token is neither stored nor logged')
})

test('of twenty machines at once with one token exactly one is let in; the others hear that it is used', async () => {
  await using rig = await startRig(postgres.current)
  const { token } = await tokenOf(rig)
  const tries = Array.from({ length: 20 }, () => join({ controlUrl: rig.internalUrl, token, name: newId(), keyPem: newKeyPem(), wallMs }))
  const ends = await Promise.allSettled(tries)
  assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const end of ends) if (end.status === 'rejected') assert.ok(refusedWith('join_token_used')(end.reason), String(end.reason))
  assert.equal((await rig.rows('SELECT 1 FROM sandglass.identities')).length, 1)
  await until('the refusals to be in the audit log', async () => (await refusals(rig, 'join_token_used')).length === 19)
})

test('a repeat with the same key, whose first answer was lost, gets in; the same name with another key does not', async () => {
  await using rig = await startRig(postgres.current)
  const { token } = await tokenOf(rig)
  const wish = { controlUrl: rig.internalUrl, token, name: newId(), keyPem: newKeyPem(), wallMs }
  await join(wish)
  await join(wish)
  await assert.rejects(join({ ...wish, keyPem: newKeyPem() }), refusedWith('join_token_used'))
  const { token: another } = await tokenOf(rig)
  await assert.rejects(join({ ...wish, token: another, keyPem: newKeyPem() }), refusedWith('identity_taken'))
  assert.equal((await rig.call<{ items: CreatedJoinToken[] }>('GET', '/v1/join-tokens', { key: rig.keys.operator })).body.items[0]?.status, 'open')
  // With its own key a machine comes back after its certificate has run out.
  await join({ ...wish, token: another })
})

test('of machines that join at once as one host, each with a token and a key of its own, exactly one is let in', async () => {
  await using rig = await startRig(postgres.current)
  const name = newId()
  const wishes = await Promise.all(
    Array.from({ length: 8 }, async () => ({ controlUrl: rig.internalUrl, token: (await tokenOf(rig)).token, name, keyPem: newKeyPem(), wallMs })),
  )
  // All look for the identity before the first has written it.
  const holder = await rig.sql.connect()
  try {
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE sandglass.identities IN SHARE MODE')
    const joining = Promise.allSettled(wishes.map(async (wish) => await join(wish)))
    await until('several to wait, and the others for a connection', async () => {
      const [waits] = await rig.rows<{ count: number }>("SELECT count(*)::integer AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
      return (waits?.count ?? 0) >= 2
    })
    await holder.query('COMMIT')
    const ends = await joining
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const end of ends) if (end.status === 'rejected') assert.ok(refusedWith('identity_taken')(end.reason), String(end.reason))
  } finally {
    holder.release()
  }
  const tokens = await rig.rows<{ used: boolean }>('SELECT used_at IS NOT NULL AS used FROM sandglass.join_tokens')
  assert.equal(tokens.filter(({ used }) => used).length, 1, 'no token is used up for nothing')
})

test('unknown, expired and revoked tokens, and a proof by another key, are refused; each is in the audit log', async () => {
  await using rig = await startRig(postgres.current)
  const unknown = `sgj_${'A'.repeat(43)}.${TEST_AUTHORITY.authority.fingerprint}`
  const wish = { controlUrl: rig.internalUrl, name: newId(), keyPem: newKeyPem(), wallMs }
  await assert.rejects(join({ ...wish, token: unknown }), refusedWith('join_token_unknown'))
  await assert.rejects(join({ ...wish, token: 'sgj_short' }), refusedWith('join_token_unknown'))

  const expired = await tokenOf(rig)
  await rig.rows(`UPDATE sandglass.join_tokens SET expires_at = clock_timestamp() WHERE id = $1`, [expired.id])
  await assert.rejects(join({ ...wish, token: expired.token }), refusedWith('join_token_expired'))

  const revoked = await tokenOf(rig)
  for (let times = 0; times < 2; times += 1) {
    assert.equal((await rig.call('DELETE', `/v1/join-tokens/${revoked.id}`, { key: rig.keys.operator })).status, 204)
  }
  await assert.rejects(join({ ...wish, token: revoked.token }), refusedWith('join_token_expired'))
  assert.equal((await rig.call('DELETE', '/v1/join-tokens/jtaaaaaaaaaaaaaaaa', { key: rig.keys.operator })).problem?.code, 'join_token_not_found')
  // Whoever has seen a public key cannot have a certificate for it.
  const good = await tokenOf(rig)
  const asked = { token: good.token, name: newId(), public_key_pem: publicPem(newKeyPem()) }
  const proof = sign(null, Buffer.from(joinProofText(asked)), createPrivateKey(newKeyPem())).toString('base64url')
  const answer = jsonPost(
    new URL('/internal/v1/join', rig.internalUrl),
    { ...asked, proof },
    new Agent({ rejectUnauthorized: false }),
    AbortSignal.timeout(5_000),
  )
  await assert.rejects(answer, refusedWith('invalid_request'))

  await until('the refusals to be in the audit log', async () => {
    const all = await Promise.all([refusals(rig, 'join_token_unknown'), refusals(rig, 'join_token_expired')])
    return all.flat().reduce((sum, { detail }) => sum + detail.count, 0) >= 2
  })
})

test('a machine trusts only the control plane that its token is from', async () => {
  await using rig = await startRig(postgres.current)
  const stranger = new TestAuthority(generateKeyPairSync('ed25519').privateKey)
  const token = `sgj_${'A'.repeat(43)}.${stranger.authority.fingerprint}`
  await assert.rejects(join({ controlUrl: rig.internalUrl, token, name: newId(), keyPem: newKeyPem(), wallMs }), refusedWith('certificate_refused'))
  await assert.rejects(join({ controlUrl: rig.url, token, name: newId(), keyPem: newKeyPem(), wallMs }), refusedWith('invalid_request'))
})

test('only an operator makes, lists and revokes tokens', async () => {
  await using rig = await startRig(postgres.current)
  for (const key of [rig.keys.owner, rig.keys.member, rig.keys.viewer]) {
    assert.equal((await rig.call('POST', '/v1/join-tokens', { key, body: {} })).status, 403)
    assert.equal((await rig.call('GET', '/v1/join-tokens', { key })).status, 403)
    assert.equal((await rig.call('DELETE', '/v1/join-tokens/jtaaaaaaaaaaaaaaaa', { key })).status, 403)
  }
  for (const ttl_seconds of [LIMITS.joinTokenSecondsMin - 1, LIMITS.joinTokenSecondsMax + 1]) {
    assert.equal((await rig.call('POST', '/v1/join-tokens', { key: rig.keys.operator, body: { ttl_seconds } })).status, 400)
  }
})
