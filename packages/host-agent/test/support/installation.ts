/** An installation of its own for one test: directories, a join token, an id, and an agent in this process or in one of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_RESOURCES, newSandboxId, type RuntimeSpec } from '@sandglass/contract'
import { noTracing } from '@sandglass/telemetry'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import { inventory } from '../../../../tests/failure/leftovers.ts'
import { type Agent, startAgent } from '../../src/agent.ts'
import { systemClock } from '../../src/clock.ts'
import { type Configuration, readConfiguration } from '../../src/configuration.ts'
import { destroyAll } from '../../src/destroy-all.ts'
import { noFaults } from '../../src/faults/crash-point.ts'
import { jsonLog, silentLog } from '../../src/log.ts'
import type { AgentWorld } from '../../src/machine.ts'
import { machineRoom } from '../../src/storage/free-space.ts'
import { ScriptedControlPlane } from './scripted-control-plane.ts'
import { until } from './until.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')
const CACHE = process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass'

const log =
  process.env['SANDGLASS_TEST_LOG'] === '1'
    ? jsonLog(
        (line) => void process.stderr.write(line),
        () => new Date(),
      )
    : silentLog
export const testWorld: AgentWorld = { clock: systemClock, log, tracing: noTracing, faults: noFaults, room: machineRoom, chance: () => 0.5 }

export class Installation {
  readonly dir: string
  readonly env: Record<string, string>
  readonly plane: ScriptedControlPlane
  #agents: Agent[] = []
  #children: ChildProcess[] = []

  private constructor(dir: string, env: Record<string, string>, plane: ScriptedControlPlane) {
    this.dir = dir
    this.env = env
    this.plane = plane
  }

  static async create(extra: Record<string, string> = {}): Promise<Installation> {
    const dir = await mkdtemp(join(tmpdir(), 'sgha-'))
    const plane = await ScriptedControlPlane.start()
    const joinToken = join(dir, 'join.token')
    await writeFile(joinToken, TEST_AUTHORITY.joinToken, { mode: 0o600 })
    await mkdir(join(dir, 'host'), { mode: 0o700 })
    const env = {
      SANDGLASS_CONTROL_URL: plane.url,
      SANDGLASS_JOIN_TOKEN_FILE: joinToken,
      SANDGLASS_HOST_STATE_DIR: join(dir, 'host'),
      SANDGLASS_CACHE: CACHE,
      SANDGLASS_INSTALLATION: `t${randomBytes(5).toString('hex')}`,
      SANDGLASS_HOST_NAME: 'test-host',
      SANDGLASS_FAKE_DRIVER: '1',
      ...extra,
    }
    return new Installation(dir, env, plane)
  }

  get configuration(): Configuration {
    return readConfiguration(this.env)
  }

  get installation(): string {
    return this.configuration.installation
  }

  async startAgent(world: AgentWorld = testWorld): Promise<Agent> {
    const agent = await startAgent(this.configuration, world)
    this.#agents.push(agent)
    await this.plane.untilWatching()
    return agent
  }

  async stopAgent(agent: Agent): Promise<void> {
    this.#agents = this.#agents.filter((known) => known !== agent)
    await agent.stop()
    await until('the watch to be over', () => (this.plane.watching ? undefined : true))
  }

  /** A process of a sandbox’s runtime on this machine. @param mark of its command line */
  pidOf(sandbox: string, mark = ''): number {
    const things = inventory({ home: this.dir, name: this.installation })
    const found = things.find(({ kind, what, sandbox: of }) => kind === 'process' && of === sandbox && what.includes(mark))
    return Number(/\d+/.exec(found?.what ?? '')?.[0])
  }

  /** An agent in a process of its own, to be killed. */
  spawnAgent(extra: Record<string, string> = {}): ChildProcess {
    const output = process.env['SANDGLASS_TEST_LOG'] === '1' ? 'inherit' : 'ignore'
    const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env['PATH'] ?? '', ...this.env, ...extra }, stdio: ['ignore', output, output] })
    this.#children.push(child)
    return child
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.stop()))
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await this.plane.stop()
    await destroyAll(this.configuration, testWorld)
    await rm(this.dir, { recursive: true, force: true })
  }
}

export async function baseTemplate(): Promise<{ name: string; digest: string }> {
  const { name, digest }: { name: string; digest: string } = JSON.parse(await readFile(join(CACHE, 'templates/base.json'), 'utf8'))
  return { name, digest }
}

export function newSandbox(): string {
  return newSandboxId('lo', randomBytes)
}

export async function specOf(sandbox: string, fields: Partial<RuntimeSpec> = {}): Promise<RuntimeSpec> {
  return {
    sandbox,
    driver: 'gvisor',
    template: await baseTemplate(),
    resources: DEFAULT_RESOURCES,
    network: { mode: 'none' },
    hostname: sandbox,
    env: {},
    pids_max: 256,
    ...fields,
  }
}
