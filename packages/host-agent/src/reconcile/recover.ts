/**
 * The first thing an agent does, before it reports or hears anything: compare its records with the machine and act on the difference.
 * guard: recover.launch. It resolves when the launches that were in flight are ended, or when an end needs more than its patience; an end
 * that is not finished is not reported.
 */
import { LIMITS } from '@sandglass/contract'
import { planRecovery } from '../domain/plan-recovery.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { stopRuntime } from '../lifecycle/stop-runtime.ts'
import { type Log, reasonOf } from '../log.ts'
import type { SandboxWorkers } from './sandbox-workers.ts'

export type RecoveryResult = { readonly adopted: number; readonly ended: number; readonly destroyed: number }

/** @param onStray told of a leftover that is still there */
export async function recover(
  workers: SandboxWorkers,
  world: LifecycleWorld,
  found: () => ReadonlySet<string>,
  log: Log,
  onStray: (name: RuntimeName) => void,
): Promise<RecoveryResult> {
  const records = workers.all().flatMap((worker) => worker.record ?? [])
  const alive = new Set<string>()
  for (const { runtime } of records) {
    if (runtime !== null && world.driver(runtime.driver).find(runtime.name) !== undefined) alive.add(runtime.name)
  }
  const actions = planRecovery(records, found(), alive)
  world.faults.reach('recover.planned')
  const patience = AbortSignal.timeout(LIMITS.hostDestroyMs * 2)
  await Promise.all(
    actions.map(async (action) => {
      if (action.kind === 'destroy') {
        log.warn('recover.leftover', { runtime: action.name })
        await stopRuntime(world, action.name, world.drivers).catch((error) => {
          log.error('recover.leftover_stays', { runtime: action.name, reason: reasonOf(error) })
          onStray(action.name)
        })
        return
      }
      const worker = workers.of(action.record.sandbox)
      if (action.kind === 'end') return worker.endBecause(action.why, patience)
      try {
        await worker.adopt()
      } catch (error) {
        await worker.endBecause({ reason: 'recovered', detail: `The host agent could not take it over: ${reasonOf(error)}` }, patience)
      }
    }),
  )
  for (const worker of workers.all()) worker.reportState()
  const count = (kind: string): number => actions.filter((action) => action.kind === kind).length
  return { adopted: count('adopt'), ended: count('end'), destroyed: count('destroy') }
}
