/** How a session begins: with a new process, or with one that is there. */
import type { StartProcess, TerminalSize } from '@sandglass/contract'
import type { Offsets } from '../exec/guest-output.ts'

export type StartOpening = {
  readonly type: 'start'
  /** Tried in their order, the next one only when the program of the one before does not exist. */
  readonly processes: readonly StartProcess[]
  readonly killOnDisconnect: boolean
  readonly writer?: string
}

export type AttachOpening = {
  readonly type: 'attach'
  /** `pr…` or `key:…` */
  readonly process: string
  readonly since: Offsets
  readonly wantsStdin: boolean
  /** Names who writes to what is no terminal, across connections. */
  readonly writer?: string
  /** Of the first byte of input that comes; absent: behind all that the process has got. */
  readonly stdinOffset?: number | undefined
  /** Others who type into it end. */
  readonly takesOver: boolean
  /** Set before the first byte of output is asked for. */
  readonly size: TerminalSize | undefined
}

export type Opening = (StartOpening | AttachOpening) & { readonly mustBeTerminal: boolean }

export function sinceOf(opening: Opening): Offsets {
  return opening.type === 'attach' ? opening.since : { stdout: 0, stderr: 0 }
}
