/** What checks may look at, passed in so that each can be tested without the machine it describes. */
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, readFile, stat, statfs } from 'node:fs/promises'
import { connect } from 'node:net'
import { availableParallelism, release, totalmem } from 'node:os'
import { delimiter, join } from 'node:path'
import { resolveSettings } from '@sandglass/supervisor'

export type FileFacts = { readonly mode: number; readonly size: number; readonly isFile: boolean; readonly executable: boolean }
export type Ran = { readonly code: number; readonly output: string }
export type Fetched = { readonly status: number; readonly body: string }

export type Machine = {
  readonly uid: number
  readonly kernel: string
  readonly cpus: number
  readonly memoryBytes: number
  /** SANDGLASS_HOME and SANDGLASS_CACHE. */
  readonly home: string
  readonly cache: string
  /** Those of the next `up`: of the environment, else of the last one. */
  readonly apiPort: number
  readonly gatewayPort: number
  /** 0: a free one at each start. */
  readonly hostHealthPort: number
  /** Text of a file, or undefined. */
  read(path: string): Promise<string | undefined>
  file(path: string): Promise<FileFacts | undefined>
  /** Path of a program, or undefined. */
  program(name: string): Promise<string | undefined>
  /** Undefined when it cannot be started or does not end in time. */
  run(command: string, args: readonly string[]): Promise<Ran | undefined>
  freeBytes(path: string): Promise<number | undefined>
  /** Does somebody accept connections on this port of loopback? */
  listens(port: number): Promise<boolean>
  get(url: string, apiKey?: string): Promise<Fetched | undefined>
}

const RUN_TIMEOUT_MS = 10_000
const GET_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 1_000

async function orUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch {
    return undefined
  }
}

function run(command: string, args: readonly string[]): Promise<Ran | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL' })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.once('error', () => resolve(undefined))
    child.once('close', (code) => resolve(code === null ? undefined : { code, output: Buffer.concat(chunks).toString().trim() }))
  })
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: CONNECT_TIMEOUT_MS })
    const answer = (value: boolean) => {
      socket.destroy()
      resolve(value)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
    socket.once('timeout', () => answer(false))
  })
}

/** @throws CodedError `invalid_request` for ports that `up` would refuse too */
export function thisMachine(environment: Readonly<Record<string, string | undefined>>): Machine {
  const home = environment['SANDGLASS_HOME'] || '/var/lib/sandglass'
  const { ports } = resolveSettings(home, environment, {})
  const file = async (path: string): Promise<FileFacts | undefined> => {
    const facts = await orUndefined(stat(path))
    if (facts === undefined) return undefined
    const executable = (await orUndefined(access(path, constants.X_OK).then(() => true))) === true
    return { mode: facts.mode & 0o7777, size: facts.size, isFile: facts.isFile(), executable }
  }
  return {
    uid: process.getuid?.() ?? -1,
    kernel: release(),
    cpus: availableParallelism(),
    memoryBytes: totalmem(),
    home,
    cache: environment['SANDGLASS_CACHE'] || '/var/cache/sandglass',
    apiPort: ports.api,
    gatewayPort: ports.gateway,
    hostHealthPort: ports.hostHealth,
    read: (path) => orUndefined(readFile(path, 'utf8')),
    file,
    async program(name) {
      for (const directory of [...(environment['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
        const path = join(directory, name)
        if ((await file(path))?.executable === true) return path
      }
      return undefined
    },
    run,
    freeBytes: (path) => orUndefined(statfs(path).then((facts) => facts.bavail * facts.bsize)),
    listens,
    get: (url, apiKey) =>
      orUndefined(
        fetch(url, { signal: AbortSignal.timeout(GET_TIMEOUT_MS), headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } }).then(
          async (response) => ({
            status: response.status,
            body: await response.text(),
          }),
        ),
      ),
  }
}
