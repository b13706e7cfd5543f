/**
 * A lab for tests: a fleet of its own in a temporary home, taken down at the end with the proof that nothing is left.
 *
 * What its clients are told of is every control plane; nodes are addressed by name.
 */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CreateSandboxOptions, Sandbox, Sandglass } from '@sandglass/sdk'
import {
  DEFAULT_SHAPE,
  fillNode,
  healNode,
  isNodeDead,
  killInLab,
  type LabShape,
  type LabState,
  labDown,
  labOf,
  labUp,
  nodeEnvironment,
  nodeOf,
  partitionNode,
  pauseNode,
  processesOfNode,
  restartNode,
  resumeNode,
  skewNode,
} from '@sandglass/supervisor/lab'
import { Api } from '../api.ts'
import { until } from '../persist.ts'

/** A lease that is shortened: renewals each second, three seconds of grace and stopping. */
export const SHORT_LEASE_MS = 6_000
export const SHORT_GRACE_MS = 2_000
const QUERY_MS = 20_000
/** Small, so that many fit. */
const RESOURCES = { vcpu: 0.25, memoryMb: 256, diskGb: 1 }

export type Guest = { readonly pid: number; readonly sandboxId: string; readonly generation: number }

export class Fleet implements AsyncDisposable {
  readonly home: string
  readonly state: LabState
  readonly #parent: string
  readonly #env: NodeJS.ProcessEnv
  readonly #key: string

  private constructor(parent: string, env: NodeJS.ProcessEnv, state: LabState) {
    this.home = state.plan.home
    this.state = state
    this.#parent = parent
    this.#env = env
    this.#key = readFileSync(join(this.home, 'admin.key'), 'utf8').trim()
  }

  static async start(shape: Partial<LabShape> = {}, settings: Readonly<Record<string, string>> = {}): Promise<Fleet> {
    const parent = mkdtempSync(join(tmpdir(), 'sandglass-lab-'))
    // Roles run as users of their own and must reach the home.
    chmodSync(parent, 0o755)
    const env = { SANDGLASS_CACHE: process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass', ...settings, SANDGLASS_LAB_HOME: join(parent, 'lab') }
    try {
      await labUp({ shape: { ...DEFAULT_SHAPE, ...shape }, env })
      return new Fleet(parent, env, labOf(env))
    } catch (error) {
      await labDown(env).catch(() => undefined)
      rmSync(parent, { recursive: true, force: true })
      throw error
    }
  }

  /** @param nodes the control planes that it knows; default: all */
  client(...nodes: string[]): Sandglass {
    return new Sandglass({ url: this.#urls(nodes).join(','), apiKey: this.#key })
  }

  /** Where a host speaks with a control plane, and what it shows there: its private key and its certificate, PEM. */
  machine(node: string): { readonly url: string; readonly identityPem: string } {
    const { plan, environment } = this.state
    const { SANDGLASS_CONTROL_URL: urls = '', SANDGLASS_HOST_STATE_DIR: state = '' } = nodeEnvironment(plan, nodeOf(plan, node), environment)
    return { url: urls.split(',')[0] ?? '', identityPem: readFileSync(join(state, 'identity.pem'), 'utf8') }
  }

  /** One control plane, spoken to by hand. */
  api(node: string): Api {
    return new Api(this.#urls([node])[0] ?? '', this.#key)
  }

  get apiKey(): string {
    return this.#key
  }

  #urls(nodes: readonly string[]): string[] {
    const { plan } = this.state
    return plan.nodes
      .filter(({ name, kind }) => (nodes.length === 0 ? kind === 'control-plane' : nodes.includes(name)))
      .map(({ address }) => `http://${address}:7070`)
  }

  /** What its sandboxes are asked for with. */
  get options() {
    return { client: this.client(), isolation: 'fake', resources: RESOURCES, restartPolicy: 'on_host_loss' } as const
  }

  create(options: CreateSandboxOptions = {}): Promise<Sandbox> {
    return Sandbox.create({ ...this.options, ...options })
  }

  /** The host that a sandbox is on, by name. */
  async hostOf(sandbox: Sandbox): Promise<string> {
    await sandbox.refresh()
    const { host_id: id } = sandbox.resource
    for await (const host of this.client().hosts.list()) if (host.id === id) return host.name
    throw new Error(`${sandbox.id} is on no host`)
  }

  /** Runtimes that exist on a node: processes of guests, whatever anybody says of them. */
  guests(node: string): Guest[] {
    return processesOfNode(this.state, node).flatMap((pid) => {
      const match = /^\S+\/agent --channel \S+\/(sb[a-z0-9]+)-g(\d+)\/channel\//.exec(argvOf(pid))
      return match?.[1] === undefined ? [] : [{ pid, sandboxId: match[1], generation: Number(match[2]) }]
    })
  }

  partition = (node: string, ...from: string[]): void => partitionNode(this.state, node, from)
  heal = (node: string): void => healNode(this.state, node)
  skew = (node: string, seconds: number): void => skewNode(this.state, node, seconds)
  pause = (node: string): void => pauseNode(this.state, node)
  resume = (node: string): void => resumeNode(this.state, node)
  fill = (node: string): void => fillNode(this.state, node)
  kill = (node: string, what: 'node' | 'role' = 'node'): Promise<void> => killInLab(this.state, node, what)
  restart = (node: string, extra: Readonly<Record<string, string>> = {}): Promise<void> => restartNode(this.state, node, extra)
  /** Without waiting until it serves, as for one that is about to die. */
  begin = (node: string, extra: Readonly<Record<string, string>>): Promise<void> => restartNode(this.state, node, extra, false)

  isDead = (node: string): boolean => isNodeDead(this.state, node)

  /** Rows of the database, asked on its own machine. */
  sql<T>(text: string): Promise<T[]> {
    const socket = join(this.home, 'run/postgres')
    const node = [process.execPath, join(import.meta.dirname, 'sql-query.ts'), socket, text]
    return new Promise((resolve, reject) => {
      execFile('setpriv', ['--reuid=sandglass-db', '--regid=sandglass-db', '--clear-groups', '--', ...node], { timeout: QUERY_MS }, (error, stdout, stderr) => {
        if (error === null) resolve(JSON.parse(stdout))
        else reject(new Error(`the database did not answer: ${stderr.slice(-500)}`, { cause: error }))
      })
    })
  }

  /** The events of a node's log that hold a text. */
  logged(node: string, text: string): string[] {
    return readFileSync(join(this.home, 'log', `${nodeOf(this.state.plan, node).name}.log`), 'utf8')
      .split('\n')
      .filter((line) => line.includes(text))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await labDown(this.#env)
    const left = leftOf(this.state)
    rmSync(this.#parent, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`left over: ${left.join(' ')}`)
  }
}

/** Everything of a lab on the machine carries its id or lies below its home. */
function leftOf({ plan }: LabState): string[] {
  const places = ['/run/netns', '/run/sandglass', '/sys/class/net', '/sys/fs/cgroup', ...listed('/sys/fs/cgroup')]
  const named = places.flatMap((place) => listed(place).filter((path) => path.includes(plan.id)))
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(` ${plan.home}`))
  return [...(existsSync(plan.home) ? [plan.home] : []), ...named, ...mounts]
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() || entry.isFile() || entry.isSymbolicLink() ? [join(folder, entry.name)] : [],
    )
  } catch {
    return []
  }
}

function argvOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** Milliseconds from now until the look gives a value. */
export async function measured<T>(limitMs: number, what: string, look: () => Promise<T | undefined> | T | undefined): Promise<{ value: T; tookMs: number }> {
  const began = performance.now()
  const value = await until(limitMs, what, look)
  return { value, tookMs: Math.round(performance.now() - began) }
}
