/** Is the guest that dialled the one that this channel belongs to? Pure. */
import type { GuestPreamble } from '@sandglass/contract'

export type ExpectedGuest = {
  /** Null for a pool member that nobody has claimed: its guest has no identity, and one that says it has is not it. */
  readonly sandbox: string | null
  readonly generation: number | null
  /** Of the guest agent that dialled first; null while none has. */
  readonly bootId: string | null
}

/** The reason to turn it away, or undefined. A returning guest shows the same identity and the same boot: same processes, same terminals. */
export function judgePreamble(preamble: GuestPreamble, expected: ExpectedGuest): string | undefined {
  const named = preamble.sandbox !== null || preamble.generation !== null
  if (named && (preamble.sandbox !== expected.sandbox || preamble.generation !== expected.generation)) return 'the identity is of another runtime'
  if (expected.bootId === null) return undefined
  if (!named && expected.sandbox !== null) return 'a guest without an identity came to a channel whose guest has one'
  if (preamble.boot_id !== expected.bootId) return 'the guest agent is not the one that was started here'
  return undefined
}
