/** The isolation driver of a simulated machine: starts, finds and ends simulated runtimes. */

import { NO_USAGE } from '@sandglass/host-agent/cgroups/runtime-usage'
import type { Driver } from '@sandglass/host-agent/drivers/contract'
import type { LaunchGate } from '@sandglass/host-agent/warden/warden'
import type { Machine } from './machine.ts'

export function simulatedDriver(machine: Machine, gate: LaunchGate): Driver {
  const names = () => new Set(machine.runtimes.keys())
  return {
    name: 'fake',
    needs: { network: false, template: false, identity: true },
    probe: async () => ({ name: 'fake', proved: true, version: '1', detail: 'simulated', probe_ms: 0 }),
    prepare: () => machine.step('prepares a launch', () => undefined),
    async launch({ name, spec }, signal, spawned) {
      signal.throwIfAborted()
      gate.through(['launch'])
      if (machine.world.random.chance(machine.failingLaunches)) throw new Error('the launch was told to fail')
      // To start a process is one call: from here on it is there, whatever becomes of who called.
      const over = Promise.withResolvers<void>()
      machine.launch(name, spec.resources.memory_mb, over.resolve)
      spawned()
      signal.addEventListener('abort', () => over.reject(signal.reason), { once: true })
      await over.promise
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
