/**
 * A real installation for tests: its own home below the temporary directory, ports found free, everything started by `./sandglass up`.
 *
 * Whoever starts one takes it down and proves that nothing is left.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ProfileSchema, parserOf } from '@sandglass/contract'
import { Sandbox, Sandglass } from '@sandglass/sdk'
import { freePort } from '@sandglass/testkit'
import { inventory } from '../failure/leftovers.ts'
import { until } from './bounds.ts'

export const ROOT = join(import.meta.dirname, '../..')
/** What the launcher becomes when nothing is to be installed; `first-run.test.ts` goes through the launcher itself. */
export const COMMAND = [process.execPath, join(ROOT, 'packages/cli/src/main.mjs')] as const
const UP_TIMEOUT_MS = 120_000
const COMMAND_TIMEOUT_MS = 120_000
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024
const profiles = parserOf(ProfileSchema)

export type CliResult = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly stdout: Buffer; readonly stderr: string }
export type CliOptions = { readonly stdin?: Uint8Array | string; readonly timeoutMs?: number; readonly env?: Readonly<Record<string, string>> }

/** Runs a command to its end with the environment of an installation. */
function run(command: readonly string[], env: NodeJS.ProcessEnv, options: CliOptions): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const [program = '', ...args] = command
    const child = spawn(program, args, {
      env: { ...env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? COMMAND_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    let bytes = 0
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength
      if (bytes <= MAX_OUTPUT_BYTES) stdout.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    // A command that does not read its input closes it; that is its right.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.stdin)
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString('utf8') }))
  })
}

export class Installation {
  readonly home: string
  /** Environment in which `./sandglass` means this installation. */
  readonly env: NodeJS.ProcessEnv

  constructor(home: string, env: NodeJS.ProcessEnv) {
    this.home = home
    this.env = env
  }

  get apiUrl(): string {
    return profiles.parse(JSON.parse(readFileSync(join(this.home, 'profile.json'), 'utf8'))).url
  }

  /** The operator's key. */
  get operatorKey(): string {
    return readFileSync(join(this.home, 'admin.key'), 'utf8').trim()
  }

  client(apiKey: string = this.operatorKey): Sandglass {
    return new Sandglass({ url: this.apiUrl, apiKey })
  }

  /** Every sandbox that is not deleted. */
  async sandboxes(): Promise<Sandbox[]> {
    const all: Sandbox[] = []
    for await (const sandbox of Sandbox.list({ client: this.client() })) all.push(sandbox)
    return all
  }

  cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
    return run([...COMMAND, ...args], this.env, options)
  }

  /** The same through `./sandglass`. */
  launcher(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
    return run([join(ROOT, 'sandglass'), ...args], this.env, options)
  }

  /** Runs a command that must succeed; its standard output. */
  async ok(args: readonly string[], options: CliOptions = {}): Promise<string> {
    const { code, signal, stdout, stderr } = await this.cli(args, options)
    assert.equal(code, 0, `sandglass ${args.join(' ')} ended with ${code ?? signal}: ${stderr}${stdout.toString('utf8').slice(0, 2_000)}`)
    return stdout.toString('utf8')
  }
}

/** This process's environment without what would lead a command elsewhere, and with what the launcher sets. */
export function commandEnvironment(): NodeJS.ProcessEnv {
  const { SANDGLASS_URL: _, SANDGLASS_API_KEY: __, NODE_TEST_CONTEXT: ___, ...inherited } = process.env
  return { SANDGLASS_CACHE: '/var/cache/sandglass', ...inherited, SANDGLASS_ROOT: ROOT }
}

/** Everything of the roles' logs that helps to see why an installation did not come up. */
async function lastLogs(home: string): Promise<string> {
  if (!existsSync(join(home, 'log'))) return ''
  return new Promise((resolve) => {
    execFile('sh', ['-c', 'tail -n 15 "$1"/log/*.log', 'sh', home], (_, stdout) => resolve(stdout))
  })
}

export type Owned = { readonly installation: Installation; readonly stop: () => Promise<void> }

/** Asserts that nothing of an installation is left on this machine but files below its home, and none of those is of a sandbox but its record. */
export async function nothingLeft(home: string): Promise<void> {
  let left: readonly { readonly kind: string; readonly what: string }[] = []
  await until(60_000, 'nothing of the installation is left', () => {
    left = inventory({ home }).filter(({ kind }) => kind !== 'record')
    return left.length === 0
  }).catch(() => assert.deepEqual(left, [], `nothing of ${home} is left.`))
}

/** @param env joins the environment of every command, for tests that exchange a part of the machine */
export async function startInstallation(env: Readonly<Record<string, string>> = {}): Promise<Owned> {
  const parent = mkdtempSync(join(tmpdir(), 'sandglass-test-'))
  // Roles run as users of their own and must reach the home.
  chmodSync(parent, 0o755)
  const home = join(parent, 'home')
  const ports = { SANDGLASS_API_PORT: String(await freePort()), SANDGLASS_GATEWAY_PORT: String(await freePort()) }
  const installation = new Installation(home, { ...commandEnvironment(), ...ports, ...env, SANDGLASS_HOME: home })
  const stop = async (): Promise<void> => {
    const down = await installation.cli(['down', '--sandboxes'])
    await nothingLeft(home)
    rmSync(parent, { recursive: true, force: true })
    assert.equal(down.code, 0, `down --sandboxes works: ${down.stderr}`)
  }
  const up = await installation.cli(['up', '--detach'], { timeoutMs: UP_TIMEOUT_MS })
  if (up.code !== 0) {
    const logs = await lastLogs(home)
    await stop().catch(() => undefined)
    assert.fail(`up --detach ended with ${up.code}: ${up.stderr}${up.stdout.toString('utf8')}\n${logs}`)
  }
  return { installation, stop }
}
