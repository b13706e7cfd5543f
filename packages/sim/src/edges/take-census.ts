/** What is on the simulated machine. */
import type { Traces } from '@sandglass/host-agent/domain/plan-census'
import { presentMachine } from '../host/machine.ts'

export function takeCensus(): Traces {
  const machine = presentMachine()
  const names = new Set(machine.runtimes.keys())
  return { process: names, cgroup: names, runtime_state: new Set(), netns: new Set(), mount: new Set(), directory: new Set(machine.directories) }
}

export function namesIn(traces: Traces): Set<string> {
  return new Set(Object.values(traces).flatMap((names) => [...names]))
}
