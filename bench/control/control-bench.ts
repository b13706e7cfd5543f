/**
 * What rows of the control plane alone are given: a durable Postgres, and no installation. Hosts are simulated, so that nothing is measured but the control
 * plane, its database, and the SDK that asks it.
 */
import type { TestPostgres } from '@sandglass/testkit'
import type { Bench, Family } from '../bench.ts'
import type { Finding } from '../report/finding.ts'

export type ControlBench = Pick<Bench, 'samples' | 'scratch' | 'signal' | 'atRest' | 'count' | 'note'> & { readonly postgres: TestPostgres }

export type ControlFamily = Pick<Family, 'ids'> & {
  readonly measure: (bench: ControlBench) => Promise<Finding[]>
  /** Takes minutes: measured only when it is asked for by id. */
  readonly isLong?: true
}
