/** Runs the real command line as a process of its own, against a server that the test scripts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { ScriptedServer } from '../../sdk/test/scripted-server.ts'

export const MAIN = join(import.meta.dirname, '../src/main.mjs')
export const API_KEY = `sgk_${'k'.repeat(43)}`

export type Finished = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly stdout: Buffer; readonly stderr: string }

export type Started = { readonly child: ChildProcess; readonly finished: Promise<Finished> }

const TIMEOUT_MS = 60_000

export type Environment = Readonly<Record<string, string>>

export function start(server: ScriptedServer | undefined, args: readonly string[], input?: Uint8Array, env?: Environment): Started {
  return startProgram(server, process.execPath, [MAIN, ...args], input, env)
}

function environmentOf(server: ScriptedServer | undefined): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    SANDGLASS_HOME: '/nonexistent',
    XDG_CONFIG_HOME: '/nonexistent',
    ...(server === undefined ? {} : { SANDGLASS_URL: server.url, SANDGLASS_API_KEY: API_KEY }),
  }
}

function startProgram(server: ScriptedServer | undefined, program: string, args: readonly string[], input?: Uint8Array, env: Environment = {}): Started {
  const child = spawn(program, args, {
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
    env: { ...environmentOf(server), ...env },
  })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(input)
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }))
  })
  return { child, finished }
}

export function run(server: ScriptedServer | undefined, args: readonly string[], input?: Uint8Array, env?: Environment): Promise<Finished> {
  return start(server, args, input, env).finished
}

/** @param line arguments of the command line, as a POSIX shell reads them */
export function runInShell(server: ScriptedServer, line: string): Promise<Finished> {
  return startProgram(server, '/bin/sh', ['-c', `exec '${process.execPath}' '${MAIN}' ${line}`]).finished
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Runs it on a terminal of its own (util-linux `script`). Types `type` as soon as the output matches `until`. */
export function runOnTerminal(
  server: ScriptedServer,
  args: readonly string[],
  keys?: { readonly until: RegExp; readonly type: string },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const line = [process.execPath, MAIN, ...args].map(quoted).join(' ')
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', `stty cols 120 rows 30; exec ${line}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
    env: { ...environmentOf(server), TERM: 'xterm' },
  })
  let output = ''
  let typed = keys === undefined
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    if (typed || keys === undefined || !keys.until.test(output)) return
    typed = true
    child.stdin.write(keys.type)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
