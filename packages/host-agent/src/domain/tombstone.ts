/** When the high-water mark of a sandbox may be forgotten. */
import { LIMITS } from '@sandglass/contract'
import type { SandboxRecord } from './sandbox-record.ts'

/**
 * guard: tomb.term. A ticket is refused once this host has heard of a lease term beyond the ticket's by LIMITS.ticketTerms, so a tombstone that
 * is older than that protects against nothing.
 */
export function mayForget(record: SandboxRecord, lastSeq: number): boolean {
  return record.phase === 'gone' && record.settled && record.term !== null && lastSeq > record.term + LIMITS.ticketTerms
}
