/**
 * The identity of a role's process from its start to its end: read from disk, or got by joining; renewed at half of its life, spread by chance, on this
 * machine's monotonic clock. The first renewal is at the start, because how much of its life has passed is only known by a clock that may be wrong; the
 * process does not wait for it. A control plane that does not answer is asked again; the certificate goes on until then.
 */
import type { Agent } from 'node:https'
import { CodedError, type IssuedCertificate, IssuedCertificateSchema, LIMITS, parserOf } from '@sandglass/contract'
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
  readonly controlUrl: string
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
  // A key that has not brought a certificate yet is used again: its join may have been answered, and the answer lost.
  return await joinAnew(place, record !== undefined && record.issued === undefined ? record.keyPem : newKeyPem(), world)
}

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
  const { file, controlUrl, name, token } = place
  if (token === undefined) throw new CodedError('certificate_required', `${file} holds no identity: this machine has not joined. Type: sandglass host join URL`)
  // Before it is shown: should the answer be lost, the same key gets the same one.
  await writeIdentityFile(file, { keyPem, issued: undefined })
  const identity = new OwnIdentity(keyPem, recordOf(await join({ controlUrl, token, name, keyPem, wallMs: world.wallMs })), world.wallMs)
  await writeIdentityFile(file, identity.record)
  world.told('identity.joined', null)
  return identity
}

const recordOf = ({ certificate_pem, ca_pem }: IssuedCertificate) => ({ certificatePem: certificate_pem, caPems: ca_pem })

/** Renews until the signal fires. */
export async function keepRenewed(identity: OwnIdentity, place: IdentityPlace, world: KeeperWorld, signal: AbortSignal): Promise<void> {
  const agent = controlPlaneAgent(identity, { keepAlive: false })
  const url = new URL('/internal/v1/certificates', secureUrl(place.controlUrl, 'The control plane'))
  let mayJoin = place.token !== undefined
  for (let waitMs = 0; ; ) {
    await world.wait(waitMs, signal)
    try {
      waitMs = await renewOnce(identity, place, url, agent())
      world.told('identity.renewed', null)
    } catch (error) {
      signal.throwIfAborted()
      const isRefused = error instanceof CodedError && error.code === 'certificate_refused'
      world.told(isRefused ? 'identity.refused' : 'identity.renewal_failed', error instanceof Error ? error.message : String(error))
      waitMs = RETRY_MS
      // It was removed, and whoever started this process has invited it again. Once: a removal stands against a process that runs.
      if (isRefused && mayJoin) {
        mayJoin = false
        await rejoin(identity, place, world).then(
          () => {
            waitMs = 0
          },
          (reason: unknown) => world.told('identity.refused', reason instanceof Error ? reason.message : String(reason)),
        )
      }
    }
    // Spread, so that machines that joined together do not come together.
    waitMs *= 0.9 + 0.2 * world.chance()
  }
}

/** @returns until the next one */
async function renewOnce(identity: OwnIdentity, place: IdentityPlace, url: URL, agent: Agent): Promise<number> {
  const answer = issued.parse(await jsonPost(url, {}, agent, AbortSignal.timeout(LIMITS.hostControlRequestMs)))
  identity.replace(recordOf(answer))
  await writeIdentityFile(place.file, identity.record)
  return answer.renew_after_ms
}

async function rejoin(identity: OwnIdentity, place: IdentityPlace, world: KeeperWorld): Promise<void> {
  const joined = await joinAnew(place, newKeyPem(), world)
  identity.become(joined)
}
