/** The process: environment to configuration, signals to a clean end. */
import { VERSION } from '@sandglass/contract'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { startTracing } from '@sandglass/telemetry'
import { type Config, configFrom } from './config.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { crashAt } from './faults/crash-point.ts'
import { realWorld } from './world.ts'

/** A drain that takes longer is cut off; every step of ours is safe to be killed at. */
const DRAIN_MS = 10_000
const EXIT_CONFIGURATION = 78

function readConfig(): Config {
  try {
    return configFrom(process.env)
  } catch (error) {
    process.stderr.write(`control-plane: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(EXIT_CONFIGURATION)
  }
}

function endOnSignal(controlPlane: ControlPlane): void {
  let ending = false
  const end = (): void => {
    if (ending) return
    ending = true
    setTimeout(() => process.exit(1), DRAIN_MS).unref()
    controlPlane.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
}

if (process.argv.includes(COMPILE_ONLY)) process.exit(0)
const crashPoint = process.env['SANDGLASS_CRASH_AT']
try {
  const traced = { ...realWorld, tracing: await startTracing({ service: 'sandglass-control-plane', version: VERSION, env: process.env }) }
  const world = crashPoint === undefined || crashPoint === '' ? traced : { ...traced, faults: crashAt(crashPoint) }
  endOnSignal(await startControlPlane(readConfig(), world))
} catch (error) {
  process.stderr.write(`control-plane: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  process.exit(1)
}
