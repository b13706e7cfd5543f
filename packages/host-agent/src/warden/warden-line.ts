/** Lines of the warden. Pure; `native/warden/src/protocol.rs` is their other side. */
import type { Moment } from './warden.ts'

export type WardenState = { readonly now: Moment; readonly deadline: Moment; readonly frozen: boolean; readonly pid: number }

export type WardenLine =
  | ({ readonly kind: 'state' | 'changed' } & WardenState)
  /** It did not do what it was told. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'ending' }

const STATE = /^(state|changed) 1 (\d{1,20}) (\d{1,20}) (open|frozen) (\d{1,10})$/
const REFUSED = /^refused ([a-z_]{1,40})$/

/** Undefined when it is none: of another version, or no warden at all. */
export function parseWardenLine(line: string): WardenLine | undefined {
  const [, word, now, deadline, state, pid] = STATE.exec(line) ?? []
  if (now !== undefined && deadline !== undefined) {
    return { kind: word === 'changed' ? 'changed' : 'state', now: BigInt(now), deadline: BigInt(deadline), frozen: state === 'frozen', pid: Number(pid) }
  }
  const why = REFUSED.exec(line)?.[1]
  if (why !== undefined) return { kind: 'refused', why }
  return line === 'ending' ? { kind: 'ending' } : undefined
}

const NS_PER_MS = 1_000_000n

/** Negative when the deadline has passed. */
export const leftMsOf = ({ now, deadline }: Pick<WardenState, 'now' | 'deadline'>): number => Number((deadline - now) / NS_PER_MS)
