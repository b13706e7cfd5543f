/**
 * Reports that are due: each is told again until the control plane has answered it. Kept in memory, because it follows from the records:
 * a restarted agent finds the same ones due.
 */
import { type HostReport, LIMITS } from '@sandglass/contract'

export type ReportOutcome = 'accepted' | 'stale'
type Due = { readonly report: HostReport; readonly answered: (outcome: ReportOutcome) => void }

/** Refusals are advice, not facts; past this many the oldest is dropped and the control plane's start timeout tells it. */
const REFUSALS = LIMITS.hostReportItems

export class DueReports {
  readonly #due = new Map<string, Due>()
  #changed: () => void = () => {}

  /** Called when something becomes due. */
  onDue(listener: () => void): void {
    this.#changed = listener
  }

  add(report: HostReport, answered: (outcome: ReportOutcome) => void = () => {}): void {
    this.#due.set(keyOf(report), { report, answered })
    this.#dropOldRefusals()
    this.#changed()
  }

  /** What is no longer true need not be told. */
  withdrawReady(sandbox: string): void {
    this.#due.delete(`ready ${sandbox}`)
  }

  get size(): number {
    return this.#due.size
  }

  /** The next batch, and what to do with its answer. A report that was replaced meanwhile stays due. */
  batch(): { items: HostReport[]; settle(outcomes: readonly ReportOutcome[]): void } {
    const entries = [...this.#due].slice(0, LIMITS.hostReportItems)
    return {
      items: entries.map(([, due]) => due.report),
      settle: (outcomes) => {
        entries.forEach(([key, due], index) => {
          const outcome = outcomes[index]
          if (outcome === undefined || this.#due.get(key) !== due) return
          this.#due.delete(key)
          due.answered(outcome)
        })
      },
    }
  }

  #dropOldRefusals(): void {
    const refusals = [...this.#due.keys()].filter((key) => key.startsWith('refused '))
    for (const key of refusals.slice(0, Math.max(0, refusals.length - REFUSALS))) this.#due.delete(key)
  }
}

function keyOf(report: HostReport): string {
  if (report.type === 'pool') return `pool ${report.key}`
  return report.type === 'refused' ? `refused ${report.sandbox} ${report.generation}` : `${report.type} ${report.sandbox}`
}
