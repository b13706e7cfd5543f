/** What of this installation exists on the machine, by kind. */
import { existsSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'
import type { Traces } from '../domain/plan-census.ts'
import type { Driver } from '../drivers/contract.ts'
import { listNamespaces } from '../network/network-namespace.ts'
import type { Layout } from '../state/layout.ts'
import { mountsBelow } from '../storage/mount-table.ts'

export function takeCensus(layout: Layout, drivers: readonly Driver[]): Traces {
  const traces = drivers.map((driver) => driver.traces())
  return {
    process: new Set(traces.flatMap((trace) => [...trace.process])),
    cgroup: new Set(traces.flatMap((trace) => [...trace.cgroup])),
    runtime_state: new Set(traces.flatMap((trace) => [...trace.runtime_state])),
    netns: new Set(listNamespaces(layout.netnsPrefix)),
    mount: new Set(mountsBelow(layout.runtimes).map((point) => basename(point))),
    directory: new Set(existsSync(layout.runtimes) ? readdirSync(layout.runtimes) : []),
  }
}

/** Every name that has left a trace of any kind. */
export function namesIn(traces: Traces): Set<string> {
  return new Set(Object.values(traces).flatMap((names) => [...names]))
}
