/**
 * Entry of the host agent. `--destroy-all` ends everything of the installation instead of serving, `--join` gets this machine its identity, `--compile-only`
 * ends at once.
 */

import { VERSION } from '@sandglass/contract'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { startTracing } from '@sandglass/telemetry'
import { startAgent } from './agent.ts'
import { systemClock } from './clock.ts'
import { readConfiguration } from './configuration.ts'
import { destroyAll } from './destroy-all.ts'
import { crashFaults } from './faults/crash-point.ts'
import { joinOnly } from './join.ts'
import { jsonLog, reasonOf } from './log.ts'
import type { AgentWorld } from './machine.ts'
import { machineRoom } from './storage/free-space.ts'

const log = jsonLog(
  (line) => void process.stdout.write(line),
  () => new Date(),
)

async function main(): Promise<void> {
  const configuration = readConfiguration(process.env)
  const faults = crashFaults(configuration.crashAt, () => process.kill(process.pid, 'SIGKILL'))
  const tracing = await startTracing({ service: 'sandglass-host-agent', version: VERSION, env: process.env })
  const world: AgentWorld = { clock: systemClock, log, tracing, faults, room: machineRoom, chance: Math.random }
  if (process.argv.includes('--join')) {
    process.stdout.write(`${JSON.stringify(await joinOnly(configuration, world))}\n`)
    return
  }
  if (process.argv.includes('--destroy-all')) {
    const ended = await destroyAll(configuration, world)
    log.info('host.destroyed_all', { ended })
    return
  }
  const agent = await startAgent(configuration, world)
  const stop = (signal: NodeJS.Signals): void => {
    log.info('host.stopping', { signal })
    agent.stop().then(
      () => process.exit(0),
      (error) => {
        log.error('host.stop_failed', { reason: reasonOf(error) })
        process.exit(1)
      },
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

if (process.argv.includes(COMPILE_ONLY)) process.exit(0)

// A defect ends the agent, never a sandbox: the next agent adopts what runs.
process.on('uncaughtException', (error) => {
  log.error('host.defect', { reason: reasonOf(error), stack: error.stack ?? null })
  process.exit(70)
})

// An agent that could not start must not linger: what it has begun to listen on would keep it alive, and its lock with it.
main().catch((error) => {
  log.error('host.failed', { reason: reasonOf(error) })
  process.exit(1)
})
