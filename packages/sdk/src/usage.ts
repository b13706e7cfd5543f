/** What a sandbox uses, as its host counts it. */

import { parserOf } from '@sandglass/contract/schema'
import { SandboxUsageSchema, type SandboxUsage as WireUsage } from '@sandglass/contract/usage'
import type { DataPlane } from './data-plane.ts'
import type { CallOptions } from './transport.ts'

/** Counts since the start; rates are differences of two of them. */
export type SandboxUsage = {
  /** Milliseconds of a clock of the host's own, of which only differences mean something. */
  readonly atMs: number
  readonly cpuMs: number
  readonly memoryBytes: number
  /** Where the kernel stops it. */
  readonly memoryLimitBytes: number
  readonly diskReadBytes: number
  readonly diskWrittenBytes: number
  readonly networkReceivedBytes: number
  readonly networkSentBytes: number
}

const parser = parserOf(SandboxUsageSchema)

function usageOf(wire: WireUsage): SandboxUsage {
  return {
    atMs: wire.at_ms,
    cpuMs: wire.cpu_ms,
    memoryBytes: wire.memory_bytes,
    memoryLimitBytes: wire.memory_limit_bytes,
    diskReadBytes: wire.disk_read_bytes,
    diskWrittenBytes: wire.disk_written_bytes,
    networkReceivedBytes: wire.network_received_bytes,
    networkSentBytes: wire.network_sent_bytes,
  }
}

export async function readUsage(plane: DataPlane, options: CallOptions): Promise<SandboxUsage> {
  return usageOf(await plane.transport.json({ ...options, method: 'GET', url: `${plane.base}/usage`, repeatable: true }, parser))
}
