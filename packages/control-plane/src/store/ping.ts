/** Is the database there? */
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

const query = statement('database/ping')

export async function ping(db: Queryable): Promise<void> {
  await db.run(query)
}
