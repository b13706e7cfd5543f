/** Time to interactive: from the SDK's create to the output of the first command, which is the sandbox's own boot id. */
import { type CreateSandboxOptions, Sandbox } from '@sandglass/sdk'
import type { Bench } from '../bench.ts'
import { BOOT_ID_COMMAND } from './freshness.ts'

export type FirstOutput = { readonly sandbox: Sandbox; readonly ms: number; readonly path: 'claimed' | 'cold' | null }

export async function firstOutput(bench: Bench, options: CreateSandboxOptions): Promise<FirstOutput> {
  const began = performance.now()
  const sandbox = await Sandbox.create({ client: bench.client, ttlSeconds: 1_800, ...options })
  const { stdout } = await sandbox.exec(BOOT_ID_COMMAND)
  const ms = performance.now() - began
  bench.freshness.told(sandbox.id, stdout)
  return { sandbox, ms, path: sandbox.resource.start_path }
}
