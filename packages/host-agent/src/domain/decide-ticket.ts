/**
 * May this host take up a start? Pure: the signature and the binding of the spec were checked where the order was parsed.
 *
 * The order of the guards matters: a repeated ticket is a duplicate even after it has expired, because its answer is the state of the
 * runtime, not a refusal.
 */
import { type ErrorCode, LIMITS, type StartTicket } from '@sandglass/contract'
import { isCanary } from './runtime-name.ts'
import type { SandboxRecord } from './sandbox-record.ts'

export type HostPosition = { readonly hostId: string; readonly epoch: number; readonly lastSeq: number }
export type Refusal = { readonly code: ErrorCode; readonly detail: string }

export type TicketDecision =
  | { readonly kind: 'accept' }
  /** The same generation was taken up before: its state is the answer. */
  | { readonly kind: 'duplicate' }
  /** Something of an older generation is still here: look again when it is gone. */
  | { readonly kind: 'wait' }
  | ({ readonly kind: 'refuse' } & Refusal)

const refuse = (code: ErrorCode, detail: string): TicketDecision => ({ kind: 'refuse', code, detail })

export function decideTicket(ticket: StartTicket, record: SandboxRecord | undefined, host: HostPosition): TicketDecision {
  if (ticket.host !== host.hostId) return refuse('ticket_invalid', 'The ticket is for another host.')
  // Canaries alone pass the gate of the warden without a lease.
  if (isCanary(ticket.sandbox)) return refuse('ticket_invalid', 'The ticket is for a canary, which nobody may ask for.')
  // guard: ticket.epoch
  if (ticket.epoch !== host.epoch) return refuse('stale_epoch', `The ticket is of epoch ${ticket.epoch}; this host holds ${host.epoch}.`)
  const high = record?.high ?? -1
  // guard: ticket.new
  if (ticket.generation === high) return { kind: 'duplicate' }
  // guard: ticket.old
  if (ticket.generation < high) return refuse('stale_generation', `Generation ${ticket.generation} is below ${high}, which this host has seen.`)
  // guard: ticket.term
  if (host.lastSeq > ticket.term + LIMITS.ticketTerms) {
    return refuse('ticket_expired', `The ticket is of term ${ticket.term}; this host has heard of ${host.lastSeq}.`)
  }
  if (record !== undefined && record.phase !== 'gone') return { kind: 'wait' }
  return { kind: 'accept' }
}
