/** Rows as the design's table orders them, and those that gave nothing. Pure. */

type Identified = { readonly id: string }

export function inOrder<T extends Identified>(rows: readonly T[], ids: readonly string[]): T[] {
  return [...rows].sort((left, right) => ids.indexOf(left.id) - ids.indexOf(right.id))
}

export function missingRows(rows: readonly Identified[], asked: readonly string[]): string[] {
  return asked.filter((id) => !rows.some((row) => row.id === id))
}
