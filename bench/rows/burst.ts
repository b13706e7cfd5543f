/** What the bursts share: many creates at once from one SDK process, the gate behind them, and the end of it all. */

import type { Resources } from '@sandglass/contract/sandbox'
import type { Sandbox } from '@sandglass/sdk'
import type { Bench } from '../bench.ts'
import { crashGate, endAll } from '../installation/crash-gate.ts'
import { type FirstOutput, firstOutput } from '../installation/first-output.ts'
import { asOptions } from '../installation/sizes.ts'
import { inFlight } from '../measure/interleave.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const PROOFS_IN_FLIGHT = 8

export type Burst = {
  readonly started: readonly FirstOutput[]
  /** Until the last first output. */
  readonly ms: number
  readonly failures: readonly string[]
}

/** @param gapMs between one create and the next; 0: all at once */
export async function burst(bench: Bench, count: number, size: Resources, gapMs = 0): Promise<Burst> {
  const began = performance.now()
  const starts = Array.from({ length: count }, async (_, index) => {
    if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, index * gapMs))
    return firstOutput(bench, { resources: asOptions(size) })
  })
  const settled = await Promise.allSettled(starts)
  const ms = performance.now() - began
  const started = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failures = settled.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
  await inFlight(
    PROOFS_IN_FLIGHT,
    started.map(
      ({ sandbox }) =>
        () =>
          bench.freshness.prove(sandbox),
    ),
  )
  return { started, ms, failures }
}

export const sandboxesOf = ({ started }: Burst): readonly Sandbox[] => started.map(({ sandbox }) => sandbox)

export const coldOf = ({ started }: Burst): number => started.filter(({ path }) => path !== 'claimed').length

/** Kills control plane and host agent, then ends everything: nothing may be left, nothing may be made up. */
export async function gate(bench: Bench, id: string, result: Burst, poolMembers: number): Promise<Finding> {
  const alive = sandboxesOf(result)
  const crash = await crashGate(bench.installation, alive, bench.freshness).catch((error: unknown) => [`no way back from the crash: ${String(error)}`])
  const wrong = [...crash, ...(await endAll(bench.installation, alive, poolMembers))]
  for (const line of [...result.failures.map((failure) => `failed: ${failure}`), ...wrong].slice(0, 10)) bench.note(id, line)
  return {
    id,
    metric: 'failures, orphans and phantom rows, kill -9 included',
    unit: '',
    value: result.failures.length + wrong.length,
    peer: '',
    peerValue: null,
    must: valueAtMost(0, ''),
    aim: valueAtMost(0, ''),
  }
}

/** No speed counts unless the gate behind it holds. */
export const voidBehind = ({ value }: Finding): string | undefined => (value === 0 ? undefined : 'the gate behind it does not hold')
