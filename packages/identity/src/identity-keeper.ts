/**
 * The identity of a role's process from its start to its end: read from disk, or got by joining; renewed at half of its life, spread by chance, on this
 * machine's monotonic clock. The first renewal is at the start, because how much of its life has passed is only known by a clock that may be wrong; the
 * process does not wait for it. A control plane that does not answer is asked again; the certificate goes on until then.
 */
import { rm } from 'node:fs/promises'
import type { Agent } from 'node:https'
import { CodedError, type IssuedCertificate, IssuedCertificateSchema, LIMITS, parserOf } from '@sandglass/contract'
import { askInTurn } from './ask-in-turn.ts'
import { controlPlaneAgent, secureUrl } from './identity-agent.ts'
import { readIdentityFile, writeIdentityFile } from './identity-file.ts'
import { fingerprintIn, join, newKeyPem } from './join.ts'
import { jsonPost } from './json-post.ts'
import { OwnIdentity } from './own-identity.ts'
import { fingerprintOf } from './trust.ts'

const RETRY_MS = 30_000
const issued = parserOf(IssuedCertificateSchema)

export type IdentityPlace = {
  readonly file: string
  /** Of replicas of one control plane, their listeners for machines. */
  readonly controlUrls: readonly [string, ...string[]]
  /** The host's id, or the gateway's name. */
  readonly name: string
  /** A join token, when this process was given one: it joins with it where it has no identity that it could use. */
  readonly token: string | undefined
}

export type KeeperWorld = {
  readonly wallMs: () => number
  /** In [0, 1). */
  readonly chance: () => number
  /** @throws the signal's reason */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  readonly told: (event: 'identity.joined' | 'identity.renewed' | 'identity.renewal_failed' | 'identity.refused', reason: string | null) => void
}

/** @throws CodedError why there is none: what the control plane says of the token, `certificate_required` without one */
export async function openIdentity(place: IdentityPlace, world: KeeperWorld): Promise<OwnIdentity> {
  const record = await readIdentityFile(place.file)
  const usable = record?.issued === undefined ? undefined : usableOf(place, record.keyPem, record.issued, world)
  if (usable !== undefined) return usable
  const known = (await readIdentityFile(pendingOf(place)))?.keyPem ?? record?.keyPem
  return known === undefined ? await joinAnew(place, newKeyPem(), world) : await joinWithKnown(place, known, world)
}

/** Where the key of a join is until that has succeeded: should its answer be lost, the same key gets the same one. What is good stays good meanwhile. */
const pendingOf = ({ file }: IdentityPlace): string => `${file}.joining`

/** With its own key a machine comes back as who it was, however long it was away; with one that was revoked it does not, and takes another. */
async function joinWithKnown(place: IdentityPlace, keyPem: string, world: KeeperWorld): Promise<OwnIdentity> {
  try {
    return await joinAnew(place, keyPem, world)
  } catch (error) {
    if (!isRefused(error)) throw error
    return await joinAnew(place, newKeyPem(), world)
  }
}

const isRefused = (error: unknown): boolean => error instanceof CodedError && error.code === 'certificate_refused'

function usableOf(
  place: IdentityPlace,
  keyPem: string,
  held: { certificatePem: string; caPems: readonly string[] },
  world: KeeperWorld,
): OwnIdentity | undefined {
  try {
    const identity = new OwnIdentity(keyPem, held, world.wallMs)
    // A token of another CA: the installation was made anew.
    const isOfToken = place.token === undefined || identity.trust.keys.some((key) => fingerprintOf(key) === fingerprintIn(place.token ?? ''))
    return identity.self.name === place.name && isOfToken ? identity : undefined
  } catch (error) {
    if (place.token !== undefined) return undefined
    throw error
  }
}

async function joinAnew(place: IdentityPlace, keyPem: string, world: KeeperWorld): Promise<OwnIdentity> {
  const { file, controlUrls, name, token } = place
  if (token === undefined) throw new CodedError('certificate_required', `${file} holds no identity: this machine has not joined. Type: sandglass host join URL`)
  await writeIdentityFile(pendingOf(place), { keyPem, issued: undefined })
  const identity = new OwnIdentity(
    keyPem,
    recordOf(await askInTurn(controlUrls, (controlUrl) => join({ controlUrl, token, name, keyPem, wallMs: world.wallMs }))),
    world.wallMs,
  )
  await writeIdentityFile(file, identity.record)
  await rm(pendingOf(place), { force: true })
  world.told('identity.joined', null)
  return identity
}

const recordOf = ({ certificate_pem, ca_pem }: IssuedCertificate) => ({ certificatePem: certificate_pem, caPems: ca_pem })

/**
 * Asks the control plane whether the identity is still good, and joins with the token when it was revoked: whoever gave that has invited the machine again.
 * @throws CodedError what the control plane says; `unavailable` when it cannot be reached
 */
export async function confirmIdentity(identity: OwnIdentity, place: IdentityPlace, world: KeeperWorld): Promise<void> {
  const renewal = renewalOf(identity, place)
  try {
    await renewOnce(identity, place, renewal)
  } catch (error) {
    if (!isRefused(error) || place.token === undefined) throw error
    await rejoin(identity, place, world)
  }
}

/** Renews until the signal fires. */
export async function keepRenewed(identity: OwnIdentity, place: IdentityPlace, world: KeeperWorld, signal: AbortSignal): Promise<void> {
  const renewal = renewalOf(identity, place)
  const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
  let mayJoin = place.token !== undefined
  for (let waitMs = 0; ; ) {
    await world.wait(waitMs, signal)
    try {
      waitMs = await renewOnce(identity, place, renewal)
      world.told('identity.renewed', null)
    } catch (error) {
      signal.throwIfAborted()
      world.told(isRefused(error) ? 'identity.refused' : 'identity.renewal_failed', reasonOf(error))
      waitMs = RETRY_MS
      if (isRefused(error) && mayJoin) {
        // Once: a removal stands against a process that runs.
        mayJoin = false
        await rejoin(identity, place, world).catch((reason: unknown) => world.told('identity.refused', reasonOf(reason)))
      }
    }
    // Spread, so that machines that joined together do not come together.
    waitMs *= 0.9 + 0.2 * world.chance()
  }
}

type Renewal = { readonly agent: () => Agent; readonly urls: readonly URL[] }

function renewalOf(identity: OwnIdentity, place: IdentityPlace): Renewal {
  return {
    agent: controlPlaneAgent(identity, { keepAlive: false }),
    urls: place.controlUrls.map((url) => new URL('/internal/v1/certificates', secureUrl(url, 'The control plane'))),
  }
}

/** @returns until the next one */
async function renewOnce(identity: OwnIdentity, place: IdentityPlace, { agent, urls }: Renewal): Promise<number> {
  const ask = (url: URL) => jsonPost(url, {}, agent(), AbortSignal.timeout(LIMITS.hostControlRequestMs))
  const answer = issued.parse(await askInTurn(urls, ask))
  identity.replace(recordOf(answer))
  await writeIdentityFile(place.file, identity.record)
  return answer.renew_after_ms
}

async function rejoin(identity: OwnIdentity, place: IdentityPlace, world: KeeperWorld): Promise<void> {
  const joined = await joinAnew(place, newKeyPem(), world)
  identity.become(joined)
}
