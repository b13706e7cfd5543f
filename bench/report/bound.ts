/** What a row must reach, in the form of the design's table: a bound on the ratio to the peer, or on the value itself. Pure. */

export type Bound = {
  readonly of: 'ratio' | 'value'
  readonly side: 'most' | 'least'
  readonly limit: number
  /** Of the value; a ratio has none. */
  readonly unit: string
}

export const ratioAtMost = (limit: number): Bound => ({ of: 'ratio', side: 'most', limit, unit: '' })
export const ratioAtLeast = (limit: number): Bound => ({ of: 'ratio', side: 'least', limit, unit: '' })
export const valueAtLeast = (limit: number, unit: string): Bound => ({ of: 'value', side: 'least', limit, unit })
export const valueAtMost = (limit: number, unit: string): Bound => ({ of: 'value', side: 'most', limit, unit })

/** `≤ 1/6`, `≥ 1.5×`, `≤ 32 MiB`; `-` for none */
export function textOfBound(bound: Bound | null): string {
  if (bound === null) return '-'
  const { of, side, limit, unit } = bound
  const sign = side === 'most' ? '≤' : '≥'
  if (of === 'value') return `${sign} ${limit} ${unit}`.trimEnd()
  const inverse = Math.round(1 / limit)
  const isFraction = limit < 0.5 && Math.abs(1 / limit - inverse) < 1e-6
  return `${sign} ${isFraction ? `1/${inverse}` : `${limit}×`}`
}

/** A number that was not measured reaches nothing, not even the bound that is not there. */
export function reaches(bound: Bound | null, { value, ratio }: { readonly value: number | null; readonly ratio: number | null }): boolean {
  if (bound === null) return value !== null && !Number.isNaN(value)
  const measured = bound.of === 'ratio' ? ratio : value
  if (measured === null || Number.isNaN(measured)) return false
  return bound.side === 'most' ? measured <= bound.limit : measured >= bound.limit
}
