/** May this host obey an end order? Pure. */
import type { EndOrder } from '@sandglass/contract'
import { newerPool, recordEndOrder, type SandboxRecord } from './sandbox-record.ts'

export type EndDecision =
  /** The record to be made durable before anything is ended or reported. */
  | { readonly kind: 'apply'; readonly record: SandboxRecord }
  /** Nothing new; where an end is due it is told again. */
  | { readonly kind: 'repeat' }
  | { readonly kind: 'ignore'; readonly detail: string }

export function decideEnd(order: EndOrder, record: SandboxRecord | undefined, hostId: string): EndDecision {
  if (order.host !== hostId) return { kind: 'ignore', detail: 'The order is for another host.' }
  // guard: end.gen
  if (record !== undefined && order.upto < record.high) {
    return { kind: 'ignore', detail: `The order ends generations up to ${order.upto}; this host has seen ${record.high}.` }
  }
  const sameMark = record !== undefined && order.upto === record.high && record.term !== null && order.term <= record.term
  const poolKnown = record !== undefined && newerPool(order.pool, record.pool) === record.pool
  if (sameMark && poolKnown && (record.phase === 'gone' || record.phase === 'ending')) return { kind: 'repeat' }
  return { kind: 'apply', record: recordEndOrder(record, order) }
}
