/** One run of the real host agent (packages/host-agent/src/agent.ts) on a simulated machine. */

import { LIMITS } from '@sandglass/contract'
import { startAgent } from '@sandglass/host-agent/agent'
import type { CrashPoint } from '@sandglass/host-agent/faults/crash-point'
import type { Log, LogFields } from '@sandglass/host-agent/log'
import type { AgentWorld } from '@sandglass/host-agent/machine'
import { noTracing } from '@sandglass/telemetry'
import type { Actor } from '../kernel/actor.ts'
import type { Machine } from './machine.ts'

export type Reach = (machine: Machine, point: CrashPoint) => void

const AGENT_RESTARTS_MS = 1_000
const PLENTY_MB = 1_000_000

/** As a supervisor does: one that does not start is started again. */
export function runAgent(machine: Machine, reach: Reach): void {
  if (!machine.isUp || machine.agent !== undefined) return
  const actor = machine.newAgent()
  machine.world.note(machine.name, 'its agent starts')
  actor.run(() => {
    startAgent(configurationOf(machine), agentWorld(machine, actor, reach)).catch((error: unknown) => {
      if (!actor.alive) return
      machine.world.note(machine.name, `its agent did not start: ${String(error)}`)
      machine.killAgent()
      machine.world.at(AGENT_RESTARTS_MS, undefined, 'a supervisor', () => runAgent(machine, reach))
    })
  })
}

function configurationOf({ name, capacity, network }: Machine): Parameters<typeof startAgent>[0] {
  return {
    controlUrls: network.urls,
    identityFile: '/simulated/identity.pem',
    joinTokenFile: undefined,
    stateDir: '/simulated/host',
    runsc: '/simulated/runsc',
    guestAgent: '/simulated/guest-agent',
    warden: '/simulated/warden',
    runDir: '/simulated/run',
    renewalMs: LIMITS.leaseMs - LIMITS.leaseMarginMs,
    templatesDir: '/simulated/templates',
    installation: 'simulated',
    hostName: name,
    capacity: { vcpu: capacity.vcpu, memoryMb: capacity.memory_mb, diskGb: capacity.disk_gb },
    dataPlane: { address: '127.0.0.1', port: 0, advertised: undefined },
    healthPort: 0,
    reserve: { cpus: 0, memoryMb: 0, diskGb: 0 },
    fakeDriver: true,
    crashAt: undefined,
  }
}

function agentWorld(machine: Machine, actor: Actor, reach: Reach): AgentWorld {
  const { world, clock } = machine
  return {
    clock: {
      nowMs: () => clock.monotonicMs(world.nowMs),
      wallMs: () => Math.floor(clock.wallMs(world.nowMs)),
      wait: (ms, signal) => wait(ms, signal),
    },
    log: noting(actor, {}),
    tracing: noTracing,
    faults: { reach: (point) => reach(machine, point) },
    room: { freeDiskMb: async () => PLENTY_MB, freeMemoryMb: () => PLENTY_MB, totalMemoryMb: () => PLENTY_MB },
    chance: () => world.random.next(),
  }
}

function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason)
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** What the agent logs is part of the history. */
function noting(actor: Actor, bound: LogFields): Log {
  const note = (event: string, fields: LogFields = {}): void => {
    if (!actor.alive) return
    const told = Object.entries({ ...bound, ...fields }).filter(([, value]) => value !== undefined && value !== null)
    actor.world.note(actor.name, `${event} ${told.map(([key, value]) => `${key}=${value}`).join(' ')}`)
  }
  return { info: note, warn: note, error: note, with: (fields) => noting(actor, { ...bound, ...fields }) }
}
