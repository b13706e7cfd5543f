/** From two counts of a sandbox to what it uses now. Pure. */
import type { SandboxUsage } from '@sandglass/sdk'

/** Per second; null while there is only one count. */
export type Rates = {
  /** Of one CPU. */
  readonly cpuPercent: number
  readonly diskReadBytes: number
  readonly diskWrittenBytes: number
  readonly networkReceivedBytes: number
  readonly networkSentBytes: number
}

/** Null when there is no earlier count, or it belongs to another life of the host agent or of the sandbox. */
export function ratesOf(before: SandboxUsage | undefined, now: SandboxUsage): Rates | null {
  if (before === undefined) return null
  const ms = now.atMs - before.atMs
  if (ms <= 0 || now.cpuMs < before.cpuMs) return null
  const perSecond = (later: number, earlier: number): number => Math.max(0, Math.round(((later - earlier) * 1000) / ms))
  return {
    cpuPercent: Math.round(((now.cpuMs - before.cpuMs) * 1000) / ms) / 10,
    diskReadBytes: perSecond(now.diskReadBytes, before.diskReadBytes),
    diskWrittenBytes: perSecond(now.diskWrittenBytes, before.diskWrittenBytes),
    networkReceivedBytes: perSecond(now.networkReceivedBytes, before.networkReceivedBytes),
    networkSentBytes: perSecond(now.networkSentBytes, before.networkSentBytes),
  }
}
