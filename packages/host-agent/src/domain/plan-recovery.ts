/**
 * What an agent does with what it finds after its own restart. Pure.
 *
 * guard: recover.launch. A launch that was in flight when the agent died may still come up by itself later, so it is ended, never adopted, and
 * ended before anything at all is reported. What ran is adopted when its runtime is alive. Everything without a record is destroyed, and so is
 * every pool member that nobody had picked: the pool is filled anew.
 */
import { parseRuntimeName, type RuntimeName } from './runtime-name.ts'
import type { Ended, SandboxRecord } from './sandbox-record.ts'

export type RecoveryAction =
  | { readonly kind: 'adopt'; readonly record: SandboxRecord; readonly name: RuntimeName }
  | { readonly kind: 'end'; readonly record: SandboxRecord; readonly why: Ended }
  | { readonly kind: 'destroy'; readonly name: RuntimeName }

export function planRecovery(records: readonly SandboxRecord[], found: ReadonlySet<string>, alive: ReadonlySet<string>): RecoveryAction[] {
  const actions: RecoveryAction[] = []
  const owned = new Set<string>()
  for (const record of records) {
    if (record.runtime === null) continue
    const { name } = record.runtime
    owned.add(name)
    if (mayRun(record) && alive.has(name)) actions.push({ kind: 'adopt', record, name })
    else actions.push({ kind: 'end', record, why: whyEnded(record) })
  }
  for (const text of found) {
    const parsed = parseRuntimeName(text)
    if (parsed !== undefined && !owned.has(text)) actions.push({ kind: 'destroy', name: parsed.name })
  }
  return actions
}

/**
 * Of a claim nothing is in flight: its member was up before. Whether the guest had learned whose it is shows when it dials, which is waited for
 * before anything is reported.
 */
function mayRun({ phase, runtime }: SandboxRecord): boolean {
  return phase === 'running' || (phase === 'launching' && runtime?.path === 'claimed')
}

function whyEnded(record: SandboxRecord): Ended {
  if (record.ended !== null) return record.ended
  if (record.phase === 'running') return { reason: 'runtime_exited', detail: 'The runtime ended while no host agent ran.' }
  return { reason: 'recovered', detail: 'The host agent restarted while the sandbox was starting.' }
}
