/**
 * Structured logs: one JSON object a line on standard output.
 *
 * Fields are named by the caller, never spread from a message or a spec, so that no token and no value of an environment can slip in.
 */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export type Log = {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** The same log with fields added to every line. */
  with(fields: LogFields): Log
}

export function jsonLog(write: (line: string) => void, now: () => Date, bound: LogFields = {}): Log {
  const line = (level: string, event: string, fields: LogFields = {}): void =>
    write(`${JSON.stringify({ at: now().toISOString(), level, role: 'host-agent', event, ...bound, ...fields })}\n`)
  return {
    info: (event, fields) => line('info', event, fields),
    warn: (event, fields) => line('warn', event, fields),
    error: (event, fields) => line('error', event, fields),
    with: (fields) => jsonLog(write, now, { ...bound, ...fields }),
  }
}

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {}, with: () => silentLog }

/** A sentence about any thrown value. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
