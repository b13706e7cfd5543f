/** What a row is, and what it is given. */
import type { Sandglass } from '@sandglass/sdk'
import type { Installation } from '../tests/e2e/installation.ts'
import type { Freshness } from './installation/freshness.ts'
import type { Setting } from './installation/settings.ts'
import type { Samples } from './measure/samples.ts'
import type { Finding } from './report/finding.ts'

export type Bench = {
  readonly installation: Installation
  readonly client: Sandglass
  readonly samples: Samples
  readonly freshness: Freshness
  /** Where peers keep their files; gone at the end. */
  readonly scratch: string
  /** Aborted when the program is to end. */
  readonly signal: AbortSignal
  /** Waits until the machine is at rest, before what a neighbour's work would spoil. @throws MachineBusy */
  readonly atRest: () => Promise<void>
  /** As many samples as a row wants, or fewer when less was asked for. */
  readonly count: (wanted: number) => number
  /** Says something beside the numbers of a row. */
  readonly note: (id: string, text: string) => void
}

/** Rows that share their samples. */
export type Family = {
  readonly ids: readonly string[]
  readonly setting: Setting
  readonly measure: (bench: Bench) => Promise<Finding[]>
}
