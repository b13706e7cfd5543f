/**
 * The schema as text, by catalogue query: what a review of a migration reads. `schema.generated.txt` beside it is checked in, and a test compares it with
 * what the migrations make.
 */
import type pg from 'pg'
import { statement } from './statement.ts'

type TableRow = { name: string; columns: string[]; constraints: string[]; indexes: string[]; triggers: string[] }

const tables = statement<TableRow>('database/describe-schema')

/** @param client connected to a database that `migrate` brought up to date */
export async function dumpSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<TableRow>(tables.text)
  const blocks = rows.map((table) =>
    [`table ${table.name}`, ...table.columns, ...table.constraints, ...table.indexes, ...table.triggers]
      .map((line, index) => (index === 0 ? line : `  ${line}`))
      .join('\n'),
  )
  return `Generated from the migrations by npm run generate. Do not edit.\n\n${blocks.join('\n\n')}\n`
}
