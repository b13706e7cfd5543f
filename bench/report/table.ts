/** The report as a plain table. Pure. */
import type { ReportRow } from './finding.ts'

const HEAD = ['', 'metric', 'ours', 'peer', '', 'ratio', 'must', 'aim', 'holds'] as const

export function number(value: number | null): string {
  if (value === null) return '-'
  if (value === 0) return '0'
  const size = Math.abs(value)
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toFixed(3)
}

const withUnit = (value: number | null, unit: string): string => (value === null ? '-' : `${number(value)} ${unit}`.trimEnd())

function cells(row: ReportRow): string[] {
  return [
    row.id,
    row.metric,
    withUnit(row.value, row.unit),
    withUnit(row.peer_value, row.unit),
    row.peer,
    number(row.ratio),
    row.must,
    row.aim,
    row.holds ? 'yes' : 'NO',
  ]
}

export function table(rows: readonly ReportRow[]): string {
  const lines: readonly (readonly string[])[] = [HEAD, ...rows.map(cells)]
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => [...(line[column] ?? '')].length)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
