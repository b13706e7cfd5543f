/** `lab up` and `lab down`. Both can be killed at any moment and begun again. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import { waitUntil } from '../bounded-wait.ts'
import { closeCodeView } from '../code-view.ts'
import { idOfHome, installationOf, paths } from '../installation.ts'
import { takeInstanceLock } from '../instance-lock.ts'
import { isAlive, signalProcess } from '../process-identity.ts'
import { ALL_PASSED_ON } from '../role-environment.ts'
import { forgetDeadClocks } from './clock.ts'
import { destroyRuntimes } from './destroy-runtimes.ts'
import { unmountAll } from './disk.ts'
import { type LabState, readLabState, writeLabState } from './lab-state.ts'
import { freeNetwork, isNetworkWhole, makeNetwork, processesOfLab, removeNetwork } from './network.ts'
import { killAll, processOf, signalRole, startProcess } from './node-process.ts'
import { type LabPlan, type LabShape, type NodeKind, PORTS, planLab, shapeOf } from './plan.ts'
import { prepareLab } from './prepare-lab.ts'
import { untilReady } from './ready.ts'

const DEFAULT_HOME = '/var/lib/sandglass-lab'
const DEFAULT_CACHE = '/var/cache/sandglass'
const POLL_MS = 50
const LOCK_MS = 60_000
const DATABASE_END_MS = 5_000
/** Each is started when the kinds before it serve. */
const ORDER: readonly (readonly NodeKind[])[] = [['postgres'], ['control-plane'], ['gateway', 'host-agent']]

export const labHome = (env: NodeJS.ProcessEnv): string => resolve(env['SANDGLASS_LAB_HOME'] || DEFAULT_HOME)

/** @throws CodedError `root_required` */
export function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new CodedError('root_required', 'A lab makes network namespaces and mounts. Type: sudo ./sandglass lab')
}

/** @throws CodedError `invalid_request` when there is none */
export function labOf(env: NodeJS.ProcessEnv): LabState {
  const home = labHome(env)
  const state = readLabState(home)
  if (state === undefined) throw new CodedError('invalid_request', `There is no lab in ${home}. Type: sandglass lab up`)
  return state
}

/** One command at a time makes or ends a lab. */
async function locked<T>(home: string, work: () => Promise<T>): Promise<T> {
  let lock: Awaited<ReturnType<typeof takeInstanceLock>>
  await waitUntil(
    async () => {
      lock = await takeInstanceLock(`${idOfHome(home)}-lab`)
      return lock !== undefined
    },
    { timeoutMs: LOCK_MS, everyMs: POLL_MS },
  )
  if (lock === undefined) throw new CodedError('unavailable', `Another command is making or ending the lab in ${home}.`)
  try {
    return await work()
  } finally {
    lock.close()
  }
}

export type LabUpOptions = {
  readonly shape: LabShape
  readonly env: NodeJS.ProcessEnv
  readonly onProgress?: (text: string) => void
}

function newState({ shape, env }: LabUpOptions, home: string): LabState {
  const id = idOfHome(home)
  const cache = resolve(env['SANDGLASS_CACHE'] || DEFAULT_CACHE)
  const code = resolve(import.meta.dirname, '../../../..')
  // What an installation's home must be, a lab's must be too.
  installationOf({
    home,
    cache,
    code,
    host: '127.0.0.1',
    internalHost: '127.0.0.1',
    ports: { api: PORTS.api, gateway: PORTS.gateway, hostHealth: 0, internal: 0 },
  })
  // A runtime that starts at once needs no pool; who wants one says so.
  const usual: Record<string, string> = shape.driver === 'fake' ? { SANDGLASS_POOL_FLOOR: '0' } : {}
  const passed = Object.fromEntries(ALL_PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  return { plan: planLab(shape, { id, home, cache, code, network: freeNetwork(id) }), environment: { ...usual, ...passed } }
}

/**
 * Makes a lab and waits until every node serves. Where one of the same shape is there, it starts what is dead in it.
 * @throws CodedError `invalid_request` when one of another shape is there, `role_not_ready`
 */
export async function labUp(options: LabUpOptions): Promise<LabPlan> {
  requireRoot()
  const home = labHome(options.env)
  return locked(home, async () => {
    const before = readLabState(home)
    if (before !== undefined && JSON.stringify(shapeOf(before.plan)) !== JSON.stringify(options.shape))
      throw new CodedError('invalid_request', `In ${home} there is a lab of another shape. Type: sandglass lab down`)
    // A lab that was being made when its command was killed is unmade first: a part of a network is of no use.
    const isWhole = before !== undefined && isNetworkWhole(before.plan)
    if (!isWhole) await unmake(home)
    const state = isWhole ? before : newState(options, home)
    if (!isWhole) {
      mkdirSync(home, { recursive: true, mode: 0o711 })
      writeLabState(state)
      makeNetwork(state.plan)
    }
    const world = await prepareLab(state)
    for (const kinds of ORDER) {
      const nodes = state.plan.nodes.filter((node) => kinds.includes(node.kind))
      options.onProgress?.(`starting ${nodes.map((node) => node.name).join(', ')}`)
      await Promise.all(nodes.map((node) => startProcess(world, node)))
      await Promise.all(nodes.map((node) => untilReady(state.plan, node)))
    }
    return state.plan
  })
}

/** Ends the lab and removes everything of it, also what one that was not ended has left. @returns whether there was anything */
export async function labDown(env: NodeJS.ProcessEnv): Promise<boolean> {
  requireRoot()
  const home = labHome(env)
  return locked(home, () => unmake(home))
}

async function unmake(home: string): Promise<boolean> {
  const id = idOfHome(home)
  const state = readLabState(home)
  const isThere = state !== undefined || processesOfLab(id).length > 0
  if (state !== undefined) await endDatabase(state.plan)
  await killAll(() => processesOfLab(id), 'the lab')
  forgetDeadClocks()
  if (state !== undefined) await destroyRuntimes(state)
  removeNetwork(id)
  closeCodeView(paths.codeView(home))
  unmountAll(home)
  // The plan last: what is left of a removal that was killed is found by it.
  if (state !== undefined)
    for (const part of ['nodes', 'postgres', 'secrets', 'run', 'log', 'templates']) rmSync(join(home, part), { recursive: true, force: true })
  if (state !== undefined && existsSync(home)) rmSync(home, { recursive: true, force: true })
  return isThere
}

/** Postgres frees its shared memory when it is asked to end, and leaves it to the machine when it is killed. */
async function endDatabase(plan: LabPlan): Promise<void> {
  const node = plan.nodes.find(({ kind }) => kind === 'postgres')
  const found = node === undefined ? undefined : processOf(plan, node)
  if (node === undefined || found === undefined) return
  signalRole(plan, node, 'SIGCONT')
  signalProcess(found, 'SIGQUIT')
  await waitUntil(() => !isAlive(found), { timeoutMs: DATABASE_END_MS, everyMs: POLL_MS })
}
