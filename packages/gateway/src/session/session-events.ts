/** What a session of a client is told, and what it wants done: all there is between its decisions (session.ts) and the world (session-socket.ts). */
import type { CodedError, SignalProcess, TerminalSize } from '@sandglass/contract'
import type { OutputEvent } from '../exec/guest-output.ts'
import type { Opening } from './opening.ts'
import type { GatedFrame } from './output-gate.ts'
import type { StdinBatch } from './stdin-queue.ts'

/** Input on its way to its process. */
export type Input = {
  /** `pr…` */
  readonly process: string
  readonly isTerminal: boolean
  readonly batch: StdinBatch
  readonly writer: string | undefined
}

export type SessionAction =
  | { readonly do: 'send'; readonly frame: GatedFrame }
  | { readonly do: 'open'; readonly opening: Opening }
  /** Answered by `stdinAccepted`, by `stdinFlows` and later `stdinReceipted`, or by `stdinRefused`. */
  | { readonly do: 'stdin'; readonly input: Input }
  /** Answered by `controlDone`. */
  | { readonly do: 'signal'; readonly process: string; readonly signal: SignalProcess }
  | { readonly do: 'resize'; readonly process: string; readonly size: TerminalSize }
  | { readonly do: 'close'; readonly code: number; readonly reason: string }

export type SessionEvent =
  | { readonly type: 'message'; readonly bytes: Uint8Array; readonly isBinary: boolean }
  /** In their order. */
  | { readonly type: 'output'; readonly events: readonly OutputEvent[] }
  | { readonly type: 'failed'; readonly error: CodedError }
  | { readonly type: 'stdinAccepted' }
  /** The batch goes on a way on which others need not wait for it. */
  | { readonly type: 'stdinFlows' }
  | { readonly type: 'stdinReceipted'; readonly bytes: number }
  | { readonly type: 'stdinRefused'; readonly error: CodedError }
  | { readonly type: 'controlDone'; readonly control: 'signal' | 'resize'; readonly error?: CodedError }
  | { readonly type: 'startTimeout' }
  /** Once each LIMITS.sessionHeartbeatMs. */
  | { readonly type: 'tick' }
  | { readonly type: 'goingAway' }
  /** Its socket is closed; what it sent before is still delivered. */
  | { readonly type: 'clientGone' }
