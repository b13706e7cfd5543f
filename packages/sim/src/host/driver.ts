/** The isolation driver of a simulated machine: starts, finds and ends simulated runtimes. */

import { NO_USAGE } from '@sandglass/host-agent/cgroups/runtime-usage'
import type { Driver } from '@sandglass/host-agent/drivers/contract'
import type { Machine } from './machine.ts'

export function simulatedDriver(machine: Machine): Driver {
  const names = () => new Set(machine.runtimes.keys())
  return {
    name: 'fake',
    needs: { network: false, template: false, identity: true },
    probe: async () => ({ name: 'fake', proved: true, version: '1', detail: 'simulated', probe_ms: 0 }),
    prepare: () => machine.step('prepares a launch', () => undefined),
    async launch({ name, spec }, signal, spawned) {
      const launched = Promise.withResolvers<void>()
      await machine.step('launches', () => {
        if (machine.world.random.chance(machine.failingLaunches)) throw new Error('the launch was told to fail')
        machine.launch(name, spec.resources.memory_mb, launched.resolve)
      })
      spawned()
      await launched.promise
      await machine.step('waits for the launcher', () => undefined)
      signal.throwIfAborted()
      if (!machine.runtimes.has(name)) throw new Error('the launcher was killed')
    },
    find: (name) => (machine.runtimes.get(name)?.state === 'running' ? { pid: 1, startTicks: name } : undefined),
    limit: () => machine.step('limits', () => undefined),
    evidence: () => ({ driver: 'fake', isolation: 'none' }),
    usage: () => NO_USAGE,
    postMortem: () => null,
    kill: (name) => machine.step('kills', () => machine.remove(name, 'killed')),
    clean: () => machine.step('cleans', () => undefined),
    traces: () => ({ process: names(), cgroup: names(), runtime_state: new Set() }),
  }
}
