/**
 * Ends what hosts of a lab have started outside of their namespaces, and what is on the machine for them: a sandbox of gVisor has a namespace of its own,
 * a mount and control groups; every host has the group that its warden froze, and what that kept.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LabState } from './lab-state.ts'
import { nodeEnvironment } from './node-environment.ts'

const run = promisify(execFile)
const DESTROY_MS = 120_000

export async function destroyRuntimes({ plan, environment }: LabState): Promise<void> {
  for (const node of plan.nodes.filter(({ kind }) => kind === 'host-agent')) {
    const { NODE_COMPILE_CACHE: _unused, ...env } = nodeEnvironment(plan, node, environment)
    await run(process.execPath, [join(plan.code, 'packages/host-agent/src/main.ts'), '--destroy-all'], { env, timeout: DESTROY_MS, cwd: '/' })
  }
}
