/** What a case sees of the platform: the life of sandboxes, and what is reserved for them. */
import type { Amounts } from '@sandglass/contract'
import type { Sandboxed } from './sandboxed.ts'

export type Seen = {
  readonly id: string
  readonly name: string | null
  readonly status: string
  readonly generation: number
  readonly expiresAtMs: number
}

export type CreateOptions = {
  readonly name?: string
  readonly ttlSeconds?: number
  readonly idempotencyKey?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly vcpu?: number
  readonly memoryMb?: number
  /** Whether to wait until it is ready. Default true. */
  readonly wait?: boolean
}

export type Platform = {
  create(options: CreateOptions): Promise<Seen>
  get(idOrName: string): Promise<Seen>
  /** Every sandbox that is not deleted. */
  list(): Promise<readonly Seen[]>
  /** Asks for the end, and waits until it is proved. */
  remove(id: string): Promise<void>
  extend(id: string, ttlSeconds: number): Promise<Seen>
  /** What hosts have reserved, all together. */
  reserved(): Promise<Amounts>
  /** Reaches into a sandbox that is ready. */
  enter(id: string): Promise<Sandboxed>
}
