/** What a row found, and the line of the report that it becomes. Pure. */
import { type Bound, reaches, textOfBound } from './bound.ts'

export type Finding = {
  /** As in the design's table of numbers. Several findings of one row share it. */
  readonly id: string
  readonly metric: string
  readonly unit: string
  readonly value: number | null
  readonly peer: string
  readonly peerValue: number | null
  /** Null: the design names none. */
  readonly must: Bound | null
  readonly aim: Bound | null
  /** Why there is no number: what the row takes for granted was not so. What was seen is in the raw samples. */
  readonly void?: string | undefined
}

/** As in the JSON file. */
export type ReportRow = {
  readonly id: string
  readonly metric: string
  readonly value: number | null
  readonly unit: string
  readonly peer: string
  readonly peer_value: number | null
  /** Value divided by the peer's value. */
  readonly ratio: number | null
  readonly must: string
  readonly aim: string
  readonly holds: boolean
}

const DIGITS = 4

const rounded = (value: number | null): number | null => (value === null ? null : Number(value.toPrecision(DIGITS)))

export function ratioOf(value: number | null, peerValue: number | null): number | null {
  return value === null || peerValue === null || peerValue === 0 ? null : value / peerValue
}

/** Without the number of a row that does not count. */
export const counted = (finding: Finding): Finding => (finding.void === undefined ? finding : { ...finding, value: null })

export function reportRow(asFound: Finding): ReportRow {
  const finding = counted(asFound)
  const ratio = ratioOf(finding.value, finding.peerValue)
  return {
    id: finding.id,
    metric: finding.metric,
    value: rounded(finding.value),
    unit: finding.unit,
    peer: finding.peer,
    peer_value: rounded(finding.peerValue),
    ratio: rounded(ratio),
    must: textOfBound(finding.must),
    aim: textOfBound(finding.aim),
    holds: reaches(finding.must, { value: finding.value, ratio }),
  }
}
