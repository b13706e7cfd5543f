/** A machine keeps its identity: across restarts, a lost answer, a long absence, a removal; renewed on its own monotonic clock. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPaths } from 'node:path'
import { after, test } from 'node:test'
import { type CreatedJoinToken, LIMITS, newHostId } from '@sandglass/contract'
import { confirmIdentity, type IdentityPlace, type KeeperWorld, keepRenewed, openIdentity } from '@sandglass/identity'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const folder = mkdtempSync(joinPaths(tmpdir(), 'sandglass-identity-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

/** Waits are asked for, and end when the test says so. */
class ScriptedWorld implements KeeperWorld {
  readonly events: string[] = []
  readonly waits: number[] = []
  skewMs = 0
  #go: (() => void) | undefined
  #asked = Promise.withResolvers<void>()
  readonly wallMs = (): number => Date.now() + this.skewMs
  readonly chance = (): number => 0.5
  readonly told = (event: string): void => void this.events.push(event)
  readonly wait = (ms: number, signal: AbortSignal): Promise<void> => {
    this.waits.push(ms)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#go = resolve
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    this.#asked.resolve()
    return promise
  }

  /** Lets the wait that is going on end, and comes back with the next one. */
  async turn(): Promise<number | undefined> {
    this.#asked = Promise.withResolvers<void>()
    this.#go?.()
    await this.#asked.promise
    return this.waits.at(-1)
  }
}

const worldOf = ({ wallMs, chance, told, wait }: ScriptedWorld): KeeperWorld => ({ wallMs, chance, told, wait })

async function placeOf(rig: Rig, name = newHostId(randomBytes)): Promise<IdentityPlace> {
  files += 1
  return { file: joinPaths(folder, `${files}/identity.pem`), controlUrls: ['https://127.0.0.1:1', rig.internalUrl], name, token: await newToken(rig) }
}

const newToken = async (rig: Rig): Promise<string> =>
  (await rig.call<CreatedJoinToken>('POST', '/v1/join-tokens', { key: rig.keys.operator, body: {} })).body.token

test('it joins once, and is read from its file from then on, which nobody else can read', async () => {
  await using rig = await startRig(postgres.current)
  const [place, world] = [await placeOf(rig), new ScriptedWorld()]
  const first = await openIdentity(place, world)
  assert.equal(statSync(place.file).mode & 0o777, 0o600)
  const again = await openIdentity({ ...place, token: undefined, controlUrls: ['https://127.0.0.1:1'] }, world)
  assert.deepEqual(again.self, first.self)
  assert.deepEqual(world.events, ['identity.joined'])
  await assert.rejects(openIdentity({ ...place, file: `${place.file}.none`, token: undefined }, world), { code: 'certificate_required' })
})

test('it is renewed at its start and at half of its life, and a control plane that is away is asked again', async () => {
  await using rig = await startRig(postgres.current)
  const [place, world, stop] = [await placeOf(rig), new ScriptedWorld(), new AbortController()]
  const identity = await openIdentity(place, world)
  const before = identity.pair.cert
  const running = keepRenewed(identity, place, world, stop.signal)
  assert.equal(await world.turn(), LIMITS.certificateLifeMs / 2)
  assert.notEqual(identity.pair.cert, before)
  assert.ok(readFileSync(place.file, 'utf8').includes(identity.record.issued?.certificatePem ?? 'none'))
  await rig.stop()
  assert.equal(await world.turn(), 30_000)
  assert.deepEqual(world.events, ['identity.joined', 'identity.renewed', 'identity.renewal_failed'])
  stop.abort(new Error('over'))
  await assert.rejects(running, /over/)
})

test('after a long absence it comes back with the same key, by a new token; a clock that is hours off asks for none', async () => {
  await using rig = await startRig(postgres.current)
  const [place, world] = [await placeOf(rig), new ScriptedWorld()]
  const first = await openIdentity(place, world)
  world.skewMs = 40 * 3_600_000
  await openIdentity({ ...place, token: undefined }, world)
  world.skewMs = 60 * 3_600_000
  await assert.rejects(openIdentity({ ...place, token: undefined }, world), { code: 'certificate_refused' })
  // To the machine the old certificate has expired; the new one is looked at by the same clock, set right meanwhile.
  const looks = [60 * 3_600_000, 0]
  const joining = openIdentity(
    { ...place, token: await newToken(rig) },
    { ...worldOf(world), wallMs: () => Date.now() + (looks.length > 1 ? (looks.shift() ?? 0) : 0) },
  )
  assert.equal((await joining).self.keyFingerprint, first.self.keyFingerprint)
})

test('a removed host stays out; invited again it gets in with another key', async () => {
  await using rig = await startRig(postgres.current)
  const [place, world] = [await placeOf(rig), new ScriptedWorld()]
  const identity = await openIdentity(place, world)
  const { keyFingerprint } = identity.self
  await rig.rows("UPDATE sandglass.identities SET revoked_at = clock_timestamp() WHERE role = 'host' AND name = $1", [place.name])
  await assert.rejects(confirmIdentity(identity, { ...place, token: undefined }, world), { code: 'certificate_refused' })
  // Its own token is used.
  await assert.rejects(confirmIdentity(identity, place, world), { code: 'join_token_used' })
  await confirmIdentity(identity, { ...place, token: await newToken(rig) }, world)
  assert.notEqual(identity.self.keyFingerprint, keyFingerprint)
  await confirmIdentity(identity, { ...place, token: undefined }, world)
})
