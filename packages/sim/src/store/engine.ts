/**
 * Postgres itself, compiled to WebAssembly, in this thread: the same parser, planner, constraints and SQL as the server's, without its processes and its
 * disk. It has one session, so what several connections do to it comes one transaction after another (simulated-postgres.ts). Statements are spoken to it in
 * the server's own protocol and prepared once.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { serialize } from 'pg-protocol'
import { CommandCompleteMessage, DataRowMessage, NotificationResponseMessage, ReadyForQueryMessage, RowDescriptionMessage } from 'pg-protocol/dist/messages.js'
import { Parser } from 'pg-protocol/dist/parser.js'

export type Query = { readonly text: string; readonly values?: readonly unknown[] }

export type Row = Readonly<Record<string, unknown>>

export type Answer = {
  readonly rows: Row[]
  /** First word of the last command. */
  readonly command: string
  readonly error: Error | undefined
  /** `I`dle, in a `T`ransaction, or in one that is broken. */
  readonly status: 'I' | 'T' | 'E'
  readonly notifications: readonly string[]
}

type Field = { readonly name: string; readonly parse: (text: string) => unknown }

const MIGRATIONS = join(import.meta.dirname, '../../../control-plane/src/store/migrations')

export class Engine {
  readonly #db: PGlite
  readonly #prepared = new Map<string, string>()
  #tables = ''

  private constructor(db: PGlite) {
    this.#db = db
  }

  static async open(): Promise<Engine> {
    const db = new PGlite()
    await db.waitReady
    const engine = new Engine(db)
    await engine.migrate()
    return engine
  }

  /** From nothing to the present schema. */
  async migrate(): Promise<void> {
    this.#prepared.clear()
    await this.#db.exec('DEALLOCATE ALL; DROP SCHEMA IF EXISTS sandglass CASCADE; CREATE SCHEMA sandglass; SET search_path = sandglass; LISTEN sandglass_wake;')
    for (const name of globSync('*.sql', { cwd: MIGRATIONS }).sort()) await this.#db.exec(readFileSync(join(MIGRATIONS, name), 'utf8'))
    const { rows } = await this.#db.query<{ name: string }>(
      "SELECT format('sandglass.%I', tablename) AS name FROM pg_tables WHERE schemaname = 'sandglass' ORDER BY 1",
    )
    this.#tables = rows.map(({ name }) => name).join(', ')
  }

  empty(): void {
    const { error } = this.run({ text: `TRUNCATE ${this.#tables} RESTART IDENTITY CASCADE` })
    if (error !== undefined) throw error
  }

  /** Without values several statements may stand in one text. */
  run({ text, values }: Query): Answer {
    return this.#hear(this.#db.execProtocolRawSync(values === undefined ? serialize.query(text) : this.#bound(text, values)))
  }

  async close(): Promise<void> {
    await this.#db.close()
  }

  #bound(text: string, values: readonly unknown[]): Uint8Array {
    const known = this.#prepared.get(text)
    const name = known ?? `s${this.#prepared.size}`
    const parts: Buffer[] = []
    if (known === undefined) {
      parts.push(serialize.parse({ name, text, types: [] }), serialize.sync())
      this.#prepared.set(text, name)
    }
    parts.push(serialize.bind({ statement: name, values: values.map(textOf) }), serialize.describe({ type: 'P' }), serialize.execute(), serialize.sync())
    return Buffer.concat(parts)
  }

  #hear(bytes: Uint8Array): Answer {
    const rows: Row[] = []
    const notifications: string[] = []
    let fields: readonly Field[] = []
    let command = ''
    let error: Error | undefined
    let status: Answer['status'] = 'I'
    new Parser().parse(Buffer.from(bytes), (message) => {
      if (message instanceof RowDescriptionMessage) fields = message.fields.map(({ name, dataTypeID }) => ({ name, parse: parserFor(dataTypeID) }))
      else if (message instanceof DataRowMessage) {
        const values = message.fields
        rows.push(Object.fromEntries(fields.map(({ name, parse }, index) => [name, parsed(values[index], parse)])))
      } else if (message instanceof CommandCompleteMessage) command = message.text.split(' ')[0] ?? ''
      else if (message instanceof NotificationResponseMessage) notifications.push(message.payload)
      else if (message instanceof ReadyForQueryMessage) status = statusOf(message.status)
      else if (message instanceof pg.DatabaseError) error ??= message
    })
    return { rows, command, error, status, notifications }
  }
}

const statusOf = (letter: string): Answer['status'] => (letter === 'I' || letter === 'T' ? letter : 'E')

const parsed = (text: string | null | undefined, parse: Field['parse']): unknown => (text === null || text === undefined ? null : parse(text))

/** As store/database.ts has the server's driver do it. */
const parserFor = (oid: number): Field['parse'] => (oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, 'text'))

/** A parameter in Postgres' text, as the server's driver writes it. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (Array.isArray(value)) return `{${value.map(elementOf).join(',')}}`
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function elementOf(value: unknown): string {
  const text = textOf(value)
  return text === null ? 'NULL' : `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
