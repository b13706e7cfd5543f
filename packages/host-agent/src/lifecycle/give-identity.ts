/** Step: the guest learns who it is. It takes an identity once; the same one again is no change. */
import { CodedError, type Identity, type RuntimeSpec } from '@sandglass/contract'
import type { DriverNeeds } from '../drivers/contract.ts'
import type { GuestSession } from '../guest/guest-session.ts'

const DEFAULT_USER = 'root'

export type IdentityInput = {
  readonly spec: RuntimeSpec
  readonly generation: number
  readonly defaultCwd: string
  readonly needs: DriverNeeds
  readonly hostname: string
}

export function identityOf({ spec, generation, defaultCwd, needs, hostname }: IdentityInput): Identity {
  return {
    sandbox: spec.sandbox,
    generation,
    // A guest that shares the machine's namespaces is given the machine's own name, so that nothing of the machine changes.
    hostname: needs.identity ? spec.hostname : hostname,
    env: spec.env,
    default_user: DEFAULT_USER,
    default_cwd: defaultCwd,
    limits: needs.identity ? { pids_max: spec.pids_max } : {},
  }
}

/** @throws CodedError when the guest does not take it */
export async function giveIdentity(session: GuestSession, identity: Identity, signal: AbortSignal): Promise<void> {
  const { status } = await session.exchange('PUT', '/v1/identity', identity, signal)
  if (status !== 200) throw new CodedError('internal', `The guest agent answered ${status} to its identity.`)
}
