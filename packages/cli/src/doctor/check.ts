/** One check of `doctor`: what it looks at, what it saw, what that means, and what to type. */
import type { Machine } from './machine.ts'

export type Finding = {
  readonly status: 'ok' | 'warn' | 'fail'
  /** What was seen. */
  readonly saw: string
  /** What it means for the user; absent when all is well. */
  readonly means?: string
  /** What to type; absent when all is well. */
  readonly fix?: string
}

export type Check = {
  readonly name: string
  readonly run: (machine: Machine) => Finding | Promise<Finding>
}

export const ok = (saw: string): Finding => ({ status: 'ok', saw })
export const warn = (saw: string, means: string, fix: string): Finding => ({ status: 'warn', saw, means, fix })
export const fail = (saw: string, means: string, fix: string): Finding => ({ status: 'fail', saw, means, fix })
