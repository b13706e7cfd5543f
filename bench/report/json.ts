/** The report as JSON. Pure. */
import type { MachineFacts } from '../measure/machine.ts'
import type { ReportRow } from './finding.ts'

export type Note = { readonly id: string; readonly text: string }

export type Report = {
  readonly began_at: string
  readonly machine: MachineFacts
  /** False when something else kept the machine busy: the numbers say little then. */
  readonly quiet: boolean
  /** What is to be known beside a number, by row. */
  readonly notes: readonly Note[]
  readonly rows: readonly ReportRow[]
}

export const jsonOf = (report: Report): string => `${JSON.stringify(report, null, 2)}\n`
