/** What a host is told to run for a sandbox, and the pool whose members could become it: everything of the spec that is fixed when a member boots. */
import { LIMITS, type PoolSpec, type Resources, type RuntimeSpec } from '@sandglass/contract'
import { invariant } from '../invariant.ts'

export type RuntimeTraits = {
  readonly driver: string
  readonly template: { readonly name: string; readonly digest: string }
  readonly resources: Resources
  readonly networkMode: RuntimeSpec['network']['mode']
}

export function poolSpec({ driver, template, resources, networkMode }: RuntimeTraits): PoolSpec {
  invariant(driver === 'gvisor' || driver === 'fake', `there is no driver ${driver}`)
  return { driver, template, resources, network: { mode: networkMode }, pids_max: LIMITS.sandboxPids }
}

export function runtimeSpec(traits: RuntimeTraits, sandbox: { readonly id: string; readonly env: Readonly<Record<string, string>> }): RuntimeSpec {
  const { driver, template, resources, network, pids_max } = poolSpec(traits)
  return { sandbox: sandbox.id, driver, template, resources, network, hostname: sandbox.id, env: sandbox.env, pids_max }
}
