/** guard: conn.gen. The channel of the runtime that a gateway asks for, if this host runs exactly that generation of it. */
import { CodedError } from '@sandglass/contract'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { RuntimeIntent, SandboxRecord } from '../domain/sandbox-record.ts'

/** What is asked of the sandboxes of this host. */
export type Routes<Channel> = { find(sandbox: string): { readonly record: SandboxRecord | undefined; readonly channel: Channel | undefined } | undefined }

export type Asked = { readonly sandbox: string; readonly generation: number }

export type RunningRuntime<Channel> = { readonly name: RuntimeName; readonly runtime: RuntimeIntent; readonly channel: Channel | undefined }

export type HeldLease = { readonly epoch: number; readonly leftMs: number; readonly frozen: boolean }

/** guard: conn.gen, its half for the whole host. What stands still would never answer. @throws CodedError `unavailable` */
export function requireLease({ epoch, leftMs, frozen }: HeldLease): void {
  if (epoch === 0) throw new CodedError('unavailable', 'The lease of this sandbox’s host was taken away; what ran there is ended.')
  if (frozen || leftMs <= 0) {
    throw new CodedError(
      'unavailable',
      'The lease of this sandbox’s host has run out. The sandbox stands still until its host reaches the control plane again.',
    )
  }
}

/** @throws CodedError `sandbox_not_found`, `stale_generation`, `sandbox_not_ready`, `sandbox_ended` */
export function runningOf<Channel>(workers: Routes<Channel>, { sandbox, generation }: Asked): RunningRuntime<Channel> {
  const worker = workers.find(sandbox)
  const record = worker?.record
  if (worker === undefined || record === undefined) throw new CodedError('sandbox_not_found', 'This host does not run the sandbox.')
  if (generation < record.high) {
    if (record.phase === 'gone' || record.phase === 'ending') throw new CodedError('sandbox_ended', 'The sandbox has ended on this host.')
    throw new CodedError('stale_generation', `This host has seen generation ${record.high} of the sandbox.`)
  }
  if (generation > record.high) throw new CodedError('stale_generation', `This host has not seen generation ${generation} of the sandbox.`)
  if (record.phase === 'launching') throw new CodedError('sandbox_not_ready', 'The sandbox is still starting.')
  if (record.phase !== 'running' || record.runtime === null) throw new CodedError('sandbox_ended', 'The sandbox has ended on this host.')
  return { name: record.runtime.name, runtime: record.runtime, channel: worker.channel }
}

/** @throws CodedError as `runningOf`, and `lost_contact` */
export function routeTo<Channel>(workers: Routes<Channel>, asked: Asked): Channel {
  const { channel } = runningOf(workers, asked)
  if (channel === undefined) throw new CodedError('lost_contact', 'The host agent has no channel to the sandbox yet.')
  return channel
}
