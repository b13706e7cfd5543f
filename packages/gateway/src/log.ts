/**
 * One JSON line per event.
 *
 * Only fields that are named at the call are written: never headers, bodies, queries, keys or paths of files, so nothing secret can
 * reach a log by accident.
 */

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>
export type LogLevel = 'info' | 'warn' | 'error'
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void

/** @param wallMs milliseconds since 1970 */
export function jsonLog(write: (line: string) => void, wallMs: () => number): Log {
  return (level, event, fields = {}) => {
    write(`${JSON.stringify({ time: new Date(wallMs()).toISOString(), level, role: 'gateway', event, ...fields })}\n`)
  }
}

export const silentLog: Log = () => undefined

/** The text of an error for a log line, with its causes. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : ` (${reasonOf(error.cause)})`
  return `${error.message}${cause}`
}
