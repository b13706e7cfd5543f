/** Cursors: the place of the last item of a page, opaque to clients. */
import { CodedError, LIMITS, parserOf } from '@sandglass/contract'
import Type from 'typebox'
import type { PagePosition } from '../store/sandboxes.ts'

const positions = parserOf(Type.Tuple([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]))

export const pageLimit = (limit: number | undefined): number => limit ?? LIMITS.pageItemsDefault

export function parseCursor(cursor: string | undefined): PagePosition | undefined {
  if (cursor === undefined) return undefined
  const value = parsed(cursor)
  if (!positions.check(value)) {
    throw new CodedError('invalid_request', '/cursor is not one that a list gave.', { errors: [{ path: '/cursor', message: 'is not one that a list gave' }] })
  }
  return { micros: value[0], id: value[1] }
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

const cursorOf = (position: PagePosition): string => Buffer.from(JSON.stringify([position.micros, position.id])).toString('base64url')

/** @param rows one more than the limit when there is a next page */
export function pageOf<Row extends { id: string; created_micros: number }, Item>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown.map(view), next_cursor: rows.length > limit && last !== undefined ? cursorOf({ micros: last.created_micros, id: last.id }) : null }
}
