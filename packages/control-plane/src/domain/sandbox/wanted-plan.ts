/**
 * What a request to start or stop a sandbox means in each state. Pure: the caller has locked the rows, and applies the answer in the same transaction.
 *
 * A request for what is wanted already changes nothing, however often it comes: it is done, or waits for what is on its way. Everything else is a move of
 * the transition table. Two requests at once are two turns at the row's lock, so the later one decides.
 */
import type { SandboxStatus } from '@sandglass/contract'

export type WantedPlan =
  /** It is so. */
  | { readonly step: 'done' }
  /** It is on its way. */
  | { readonly step: 'wait' }
  | { readonly step: 'move'; readonly move: 'start' | 'stop' | 'halt' }
  /** It is so, and the record does not say it yet. */
  | { readonly step: 'rest' }
  /** It is deleted. */
  | { readonly step: 'refuse' }

const START: Readonly<Record<SandboxStatus, WantedPlan>> = {
  pending: { step: 'wait' },
  assigned: { step: 'wait' },
  starting: { step: 'wait' },
  ready: { step: 'done' },
  stopping: { step: 'move', move: 'start' },
  stopped: { step: 'move', move: 'start' },
  failed: { step: 'move', move: 'start' },
  terminating: { step: 'refuse' },
  terminated: { step: 'refuse' },
}

export const planStart = (observed: SandboxStatus): WantedPlan => START[observed]

/** @param live an assignment is, so something may still run */
export function planStop(observed: SandboxStatus, live: boolean): WantedPlan {
  switch (observed) {
    case 'pending':
    case 'assigned':
    case 'starting':
    case 'ready':
      return { step: 'move', move: live ? 'stop' : 'halt' }
    case 'stopping':
      return { step: live ? 'wait' : 'rest' }
    case 'stopped':
    case 'failed':
      return { step: live ? 'wait' : 'done' }
    case 'terminating':
    case 'terminated':
      return { step: 'refuse' }
  }
}
