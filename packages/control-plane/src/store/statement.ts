/**
 * SQL is source: each statement is a file below `sql/`, read when the process starts and prepared once per connection under its name.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Statement<Row> = {
  readonly name: string
  readonly text: string
  /** Carries the row type; never called. */
  readonly row?: () => Row
}

/** @param name path below `sql/` without the ending; also the name of the prepared statement */
export function statement<Row = never>(name: string): Statement<Row> {
  return { name, text: readFileSync(join(import.meta.dirname, 'sql', `${name}.sql`), 'utf8') }
}
