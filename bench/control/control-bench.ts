/**
 * What rows of the control plane alone are given: a durable Postgres, and no installation. Hosts are simulated, so that nothing is measured but the control
 * plane, its database, and the SDK that asks it.
 */
import type { TestPostgres } from '@sandglass/testkit'
import type { Samples } from '../measure/samples.ts'
import type { Finding } from '../report/finding.ts'

export type ControlBench = {
  readonly postgres: TestPostgres
  readonly samples: Samples
  /** Where files of the run lie; gone at the end. */
  readonly scratch: string
  readonly signal: AbortSignal
  readonly atRest: () => Promise<void>
  readonly count: (wanted: number) => number
  readonly note: (id: string, text: string) => void
}

export type ControlFamily = {
  readonly ids: readonly string[]
  readonly measure: (bench: ControlBench) => Promise<Finding[]>
  /** Takes minutes: measured only when it is asked for by id. */
  readonly isLong?: true
}
