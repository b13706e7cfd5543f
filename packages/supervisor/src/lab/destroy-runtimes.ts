/** Ends what hosts of a lab have started outside of their namespaces: a sandbox of gVisor has one of its own, a mount and control groups. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LabState } from './lab-state.ts'
import { nodeEnvironment } from './node-environment.ts'

const run = promisify(execFile)
const DESTROY_MS = 120_000

export async function destroyRuntimes({ plan, environment }: LabState): Promise<void> {
  // A fake runtime is a process in its host's namespace.
  if (plan.driver === 'fake') return
  for (const node of plan.nodes.filter(({ kind }) => kind === 'host-agent')) {
    const { NODE_COMPILE_CACHE: _unused, ...env } = nodeEnvironment(plan, node, environment)
    await run(process.execPath, [join(plan.code, 'packages/host-agent/src/main.ts'), '--destroy-all'], { env, timeout: DESTROY_MS, cwd: '/' })
  }
}
