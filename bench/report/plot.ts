/**
 * The report as a picture in text: how far each row is from its must. Pure.
 *
 * Every row that has a must is drawn on the same scale, the share of its bound that it uses, logarithmic: 1 is the bound itself, left of it is better.
 */
import type { Bound } from './bound.ts'
import { counted, type Finding, ratioOf } from './finding.ts'
import { number } from './table.ts'

const WIDTH = 60
/** Four times better than the bound on the left, four times worse on the right. */
const SPAN = Math.log(4)

/** How much of the bound is used: below 1 it holds. Null when nothing was measured. */
export function shareOfBound(asFound: Finding, bound: Bound): number | null {
  const finding = counted(asFound)
  const measured = bound.of === 'ratio' ? ratioOf(finding.value, finding.peerValue) : finding.value
  if (measured === null) return null
  if (bound.limit === 0) return measured === 0 ? 0 : Number.POSITIVE_INFINITY
  return bound.side === 'most' ? Math.max(0, measured) / bound.limit : bound.limit / Math.max(measured, Number.MIN_VALUE)
}

function column(share: number): number {
  const place = (Math.log(Math.max(share, Number.MIN_VALUE)) / SPAN + 1) / 2
  return Math.round(Math.min(1, Math.max(0, place)) * (WIDTH - 1))
}

function line(finding: Finding, label: number): string {
  const share = finding.must === null ? null : shareOfBound(finding, finding.must)
  const cells = Array.from({ length: WIDTH }, () => '·')
  cells[column(1)] = '|'
  if (share !== null) cells[column(share)] = '●'
  return `${`${finding.id} ${finding.metric}`.padEnd(label)}  ${cells.join('')}  ${share === null ? 'not measured' : `${number(share)}×`}`
}

export function plot(findings: readonly Finding[]): string {
  const bound = findings.filter(({ must }) => must !== null)
  const label = Math.max(0, ...bound.map(({ id, metric }) => `${id} ${metric}`.length))
  return ['share of the must that is used (| is the must, left is better)', ...bound.map((finding) => line(finding, label))].join('\n')
}
