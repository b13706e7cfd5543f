/**
 * Why a gateway refused a WebSocket.
 *
 * A refused upgrade does not tell why to a WebSocket. A request that needs the same rights does; this one names no process, so it changes nothing.
 */
import type { DataPlane } from './data-plane.ts'
import { SandglassError } from './error.ts'
import { signalProcess } from './signal-process.ts'

const TIMEOUT_MS = 10_000

/** @returns undefined when that cannot be told either */
export async function refusedUpgrade(plane: DataPlane, signal: AbortSignal): Promise<SandglassError | undefined> {
  try {
    await signalProcess(plane, `key:${plane.transport.world.newKey()}`, 'CONT', { timeoutMs: TIMEOUT_MS, signal })
    return undefined
  } catch (error) {
    if (!(error instanceof SandglassError)) return undefined
    return error.code === 'process_not_found' ? new SandglassError('unavailable', 'The gateway answers requests but refuses WebSockets.') : error
  }
}
