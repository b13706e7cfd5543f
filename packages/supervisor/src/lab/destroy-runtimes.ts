/**
 * Ends what hosts of a lab have made outside of their namespaces and below no home: control groups, and for gVisor namespaces and mounts of sandboxes. It is
 * the agent's own way out, and works when everything there has died.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freeDisk } from './disk.ts'
import type { LabState } from './lab-state.ts'
import { nodeEnvironment } from './node-environment.ts'
import { labPaths } from './paths.ts'

const run = promisify(execFile)
const DESTROY_MS = 120_000

export async function destroyRuntimes({ plan, environment }: LabState): Promise<void> {
  const hosts = plan.nodes.filter(({ name, kind }) => kind === 'host-agent' && existsSync(labPaths.disk(plan.home, name)))
  await Promise.all(
    hosts.map((node) => {
      // What fills its disk would keep it from writing down what it ends.
      freeDisk(plan.home, node.name)
      const { NODE_COMPILE_CACHE: _unused, ...env } = nodeEnvironment(plan, node, environment)
      return run(process.execPath, [join(plan.code, 'packages/host-agent/src/main.ts'), '--destroy-all'], { env, timeout: DESTROY_MS, cwd: '/' })
    }),
  )
}
