/** Who this host is: its certificate, got with a join token at its first start, renewed while the agent runs. */
import { readFile } from 'node:fs/promises'
import { confirmIdentity, type IdentityPlace, type KeeperWorld, keepRenewed, type OwnIdentity, openIdentity, RefusalReporter } from '@sandglass/identity'
import type { Configuration } from '../configuration.ts'
import type { AgentWorld } from '../machine.ts'

export type HostIdentity = {
  readonly identity: OwnIdentity
  /** Takes what the data plane has refused. */
  readonly refusals: RefusalReporter
  /** Asks whether it is still good, see `confirmIdentity`. */
  confirm(): Promise<void>
  /** Renews until the signal fires. */
  renew(signal: AbortSignal): Promise<void>
}

type Settings = Pick<Configuration, 'identityFile' | 'joinTokenFile' | 'controlUrls'>

/** @throws CodedError why there is none */
export async function hostIdentity(settings: Settings, hostId: string, { clock, chance, log }: AgentWorld): Promise<HostIdentity> {
  const place: IdentityPlace = { file: settings.identityFile, controlUrls: settings.controlUrls, name: hostId, token: await tokenIn(settings.joinTokenFile) }
  const world: KeeperWorld = {
    wallMs: () => Date.now(),
    chance,
    wait: (ms, signal) => clock.wait(ms, signal),
    told: (event, reason) => (reason === null ? log.info(event) : log.warn(event, { reason })),
  }
  const identity = await openIdentity(place, world)
  return {
    identity,
    refusals: new RefusalReporter(settings.controlUrls, identity),
    confirm: () => confirmIdentity(identity, place, world),
    renew: (signal) => keepRenewed(identity, place, world, signal),
  }
}

/** One that was taken away after it was used is none. */
async function tokenIn(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
