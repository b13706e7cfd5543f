/** Wake-ups on their way to other replicas. Rows are written by `Database.transaction`. */
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

const relay = statement<{ taken: number; sent: number }>('outbox/relay')

/** @returns how many rows were taken; fewer than the limit when the box is empty */
export const relayOutbox = async (db: Queryable, limit: number): Promise<number> => (await db.run(relay, [limit]))[0]?.taken ?? 0
