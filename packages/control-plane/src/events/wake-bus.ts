/**
 * Wake-ups inside one process. A wake-up is a hint that something may be due; whoever gets it reads the tables. Losing one costs a sweep period.
 */
import type { SandboxRow } from '../store/sandboxes.ts'
import type { World } from '../world.ts'

export const WAKE_TOPICS = ['placement', 'host', 'operation', 'sandbox', 'key_revoked', 'event', 'pool', 'drain', 'host_fenced', 'release', 'identity'] as const
export type WakeTopic = (typeof WAKE_TOPICS)[number]

export type Wake = {
  readonly topic: WakeTopic
  /** What it is about: `host`: host id and sandbox id, or host id alone for its pools; `operation`: its id; `sandbox`: its id and generation; `key_revoked`: key id; `event`: tenant id; `drain`: host id; `host_fenced`: host id and the epoch that began; `identity`: role and name; else empty. */
  readonly key: string
  /** Only for this process. */
  readonly local?: true
  /** Only for other processes. */
  readonly elsewhere?: true
  /** With `operation`: the sandbox as the commit that ended it left it, for those who wait in this process. */
  readonly sandbox?: SandboxRow
}

type Listener = (key: string, wake: Wake) => void

export class WakeBus {
  readonly #listeners = new Map<WakeTopic, Set<Listener>>()
  readonly #gapListeners = new Set<() => void>()
  readonly #hint: World['hint']

  constructor(hint: World['hint'] = (deliver) => deliver()) {
    this.#hint = hint
  }

  /** @returns removes the listener */
  on(topic: WakeTopic, listener: Listener): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /** Called when wake-ups of other replicas may have been missed. */
  onGap(listener: () => void): () => void {
    this.#gapListeners.add(listener)
    return () => void this.#gapListeners.delete(listener)
  }

  emit(wakes: readonly Wake[]): void {
    for (const wake of wakes) if (wake.elsewhere !== true) this.#hint(() => this.#deliver(wake), 'wake-up')
  }

  gap(): void {
    for (const listener of this.#gapListeners) listener()
  }

  #deliver(wake: Wake): void {
    for (const listener of this.#listeners.get(wake.topic) ?? []) listener(wake.key, wake)
  }
}

export const wakePlacement: Wake = { topic: 'placement', key: '' }
export const wakeHost = (hostId: string, sandboxId: string): Wake => ({ topic: 'host', key: `${hostId} ${sandboxId}` })
/** An order to one of its pools is due. */
export const wakePool = (hostId: string): Wake => ({ topic: 'host', key: hostId })
/** A unit of a pool was claimed. Other replicas look by themselves. */
export const wakePlanner: Wake = { topic: 'pool', key: '', local: true }
/** A drain of the host began, or has less time. */
export const wakeDrain = (hostId: string): Wake => ({ topic: 'drain', key: hostId })
/** What the host held before this epoch is not its own any more. */
export const wakeFenced = (hostId: string, epoch: number): Wake => ({ topic: 'host_fenced', key: `${hostId} ${epoch}` })
/** Something is to be released. Other replicas look by themselves. */
export const wakeRelease: Wake = { topic: 'release', key: '', local: true }
export const wakeOperation = (operationId: string, sandbox?: SandboxRow): Wake => ({
  topic: 'operation',
  key: operationId,
  ...(sandbox === undefined ? {} : { sandbox }),
})
export const wakeSandbox = (sandboxId: string, generation: number): Wake => ({ topic: 'sandbox', key: `${sandboxId} ${generation}` })
export const wakeKeyRevoked = (apiKeyId: string): Wake => ({ topic: 'key_revoked', key: apiKeyId })
export const wakeEvent = (tenantId: string): Wake => ({ topic: 'event', key: tenantId })
/** Another key joined as this machine, or it was revoked. */
export const wakeIdentity = ({ role, name }: { readonly role: string; readonly name: string }): Wake => ({ topic: 'identity', key: `${role} ${name}` })
