/**
 * The process of a node. Nobody supervises it: what is killed in a lab stays dead until it is started again, as its experimenter wants it. It outlives the
 * command that started it, and is found again by its pid file, or, whatever became of that, by the network namespace that it is in.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import { waitUntil } from '../bounded-wait.ts'
import { paths } from '../installation.ts'
import { readPidFile, removePidFile, writePidFile } from '../pid-file.ts'
import { postgresCommand } from '../postgres.ts'
import { privilegedCommand } from '../privileges.ts'
import { identityOf, type ProcessIdentity, signalProcess } from '../process-identity.ts'
import { clockEnvironment, forgetClock } from './clock.ts'
import { inNode, processesIn } from './network.ts'
import { nodeEnvironment } from './node-environment.ts'
import { type LabNode, type LabPlan, names } from './plan.ts'
import { type LabWorld, NODE_USERS } from './prepare-lab.ts'
import { runtimesOf } from './runtimes.ts'

const GONE_MS = 20_000
const POLL_MS = 10

export type NodeState = 'running' | 'paused' | 'dead'

const command = (world: LabWorld, node: LabNode): string[] =>
  node.kind === 'postgres' ? postgresCommand(world.postgres) : [world.view.node, join(world.view.root, 'packages', node.kind, 'src', 'main.ts')]

/** @param extra joins its environment, this time only */
export async function startProcess(world: LabWorld, node: LabNode, extra: Readonly<Record<string, string>> = {}): Promise<void> {
  const { plan, environment } = world
  const { home } = plan
  if (readPidFile(home, node.name) !== undefined) return
  // Only the role itself sees the node's clock: who still is root on the way would leave a semaphore that the role may not open.
  const clock = Object.entries(clockEnvironment(home, node.name)).map(([name, value]) => `${name}=${value}`)
  const as = privilegedCommand(['env', ...clock, ...command(world, node)], { user: NODE_USERS[node.kind], deathSignal: 'none' })
  const [program = '', ...args] = inNode(plan, node, [as.command, ...as.args])
  const env = nodeEnvironment(plan, node, environment, extra)
  const log = openSync(paths.log(home, node.name), 'a', 0o640)
  try {
    const child = spawn(program, args, { cwd: '/', detached: true, stdio: ['ignore', log, log], env })
    await once(child, 'spawn')
    child.unref()
    // The programs on the way become the role: they replace themselves.
    if (child.pid !== undefined) writePidFile(home, node.name, child.pid)
  } finally {
    closeSync(log)
  }
}

export const processOf = (plan: LabPlan, node: LabNode): ProcessIdentity | undefined => readPidFile(plan.home, node.name)

export function stateOf(plan: LabPlan, node: LabNode): { readonly state: NodeState; readonly pid: number | null } {
  const found = processOf(plan, node)
  if (found === undefined) return { state: 'dead', pid: null }
  return { state: isStopped(found.pid) ? 'paused' : 'running', pid: found.pid }
}

function isStopped(pid: number): boolean {
  try {
    return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const living = (pids: readonly number[]): ProcessIdentity[] => pids.flatMap((pid) => identityOf(pid) ?? [])

/** @throws CodedError `unavailable` when something does not end */
export async function killAll(pids: () => readonly number[], what: string): Promise<void> {
  const gone = await waitUntil(
    () => {
      const left = living(pids())
      for (const process of left) {
        signalProcess(process, 'SIGKILL')
        forgetClock(process.pid)
      }
      return left.length === 0
    },
    { timeoutMs: GONE_MS, everyMs: POLL_MS },
  )
  if (!gone) throw new CodedError('unavailable', `Processes of ${what} did not end: ${pids().join(' ')}.`)
}

/** Its role, what that has started and forgotten, and sandboxes. */
export function processesOf(plan: LabPlan, node: LabNode): number[] {
  const sandboxes = node.kind === 'host-agent' ? runtimesOf(names.installation(plan.id, node.name)) : []
  return [...new Set([...processesIn(names.netns(plan.id, node.name)), ...sandboxes])]
}

/** As when a machine loses its power: everything in it ends at once, runtimes too. */
export async function killNode(plan: LabPlan, node: LabNode): Promise<void> {
  await killAll(() => processesOf(plan, node), node.name)
  removePidFile(plan.home, node.name)
}

/** The role's own process alone: its runtimes live on. @throws CodedError `conflict` when there is none */
export async function killRole(plan: LabPlan, node: LabNode): Promise<void> {
  const found = livingRole(plan, node)
  await killAll(() => [found.pid].filter((pid) => identityOf(pid)?.startTime === found.startTime), node.name)
  removePidFile(plan.home, node.name)
}

/** SIGTERM, and the end that the role takes its time for; SIGKILL when that is too long. Sandboxes live on. */
export async function stopRole(plan: LabPlan, node: LabNode): Promise<void> {
  const found = processOf(plan, node)
  if (found === undefined) return
  signalProcess(found, 'SIGCONT')
  signalProcess(found, node.kind === 'postgres' ? 'SIGINT' : 'SIGTERM')
  const isGone = (): boolean => identityOf(found.pid)?.startTime !== found.startTime
  if (!(await waitUntil(isGone, { timeoutMs: GONE_MS, everyMs: POLL_MS }))) return (node.kind === 'host-agent' ? killRole : killNode)(plan, node)
  removePidFile(plan.home, node.name)
}

/** Stops the role's own process, or lets it go on; of Postgres all of them, since each connection is one. */
export function signalRole(plan: LabPlan, node: LabNode, signal: 'SIGSTOP' | 'SIGCONT'): void {
  const found = livingRole(plan, node)
  const pids = node.kind === 'postgres' ? processesIn(names.netns(plan.id, node.name)) : [found.pid]
  for (const process of living(pids)) signalProcess(process, signal)
}

function livingRole(plan: LabPlan, node: LabNode): ProcessIdentity {
  const found = processOf(plan, node)
  if (found === undefined) throw new CodedError('unavailable', `${node.name} does not run. Type: sandglass lab restart ${node.name}`)
  return found
}
