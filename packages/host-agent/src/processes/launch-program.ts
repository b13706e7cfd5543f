/**
 * Starts programs from a small shell that is kept beside this process, for what every start and every end of a sandbox runs.
 *
 * A process is made by copying the one that makes it, and Node.js does nothing else until the copy has become the program. For an agent of 150 MB the copy
 * costs 4 ms of CPU, up to 15 ms in which no guest and no gateway is served, and the writes after it a page fault each. The shell has 2 MB.
 * Programs that run now and then are started by `runCommand`, which needs no shell and keeps their output.
 *
 * The shell reads commands from its standard input, so it ends with this process; it is killed with it too, so that it begins nothing that still stood in
 * the pipe. What it has begun lives on, and its end is told even when the shell itself was killed; a new one takes its place then.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { LIMITS } from '@sandglass/contract'
import { sendSignal } from './process-table.ts'
import { COMMAND_ENVIRONMENT, CommandFailed } from './run-command.ts'

/** `run ID COMMAND...`, always in the background. An end is told by a process of the shell's that waits for it. */
const SCRIPT = `set -f
run() {
  id=$1
  shift
  "$@" </dev/null >/dev/null &
  echo "began $id $!"
  wait "$!"
  echo "ended $id $?"
}
`
/** Those who waited have ended by then; the shell collects what has ended when it is asked about its jobs. */
const COLLECT = 'jobs >/dev/null\n'
const COLLECT_AFTER_MS = 100
const SAID_CHARACTERS = 1_024

export type LaunchOptions = {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
  /** What it says is thrown away: whatever it leaves running holds nothing of the agent's. */
  readonly leavesOthers?: boolean
  readonly onSpawn?: () => void
}

type Program = {
  began(pid: number): void
  ended(status: number): void
  /** The shell was gone before it began it, or nobody is left to tell its end. */
  lost(): void
}

class LaunchingShell {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  /** Not begun yet, and begun. */
  readonly #asked = new Map<string, Program>()
  readonly #running = new Map<string, Program>()
  #rest = ''
  #said = ''
  #lastId = 0
  #collecting: NodeJS.Timeout | undefined

  constructor(onExit: (shell: LaunchingShell) => void) {
    this.#child = spawn('setpriv', ['--pdeathsig=KILL', '--', '/bin/sh', '-s'], { stdio: ['pipe', 'pipe', 'pipe'], detached: true, env: COMMAND_ENVIRONMENT })
    const { stdin, stdout, stderr } = this.#child
    stdout.setEncoding('utf8').on('data', (text: string) => this.#hear(text))
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-SAID_CHARACTERS)
    })
    stdin.on('error', () => undefined)
    this.#child.once('error', () => {
      onExit(this)
      this.#lose(this.#asked)
    })
    this.#child.once('exit', () => {
      onExit(this)
      this.#lose(this.#asked)
    })
    this.#child.once('close', () => this.#lose(this.#running))
    stdin.write(SCRIPT)
    this.#hold(false)
  }

  /** What programs have said lately. Whose it is, it does not tell. */
  get said(): string {
    return this.#said.trim()
  }

  run(argv: readonly string[], leavesOthers: boolean, program: Program): void {
    this.#lastId += 1
    const id = String(this.#lastId)
    this.#asked.set(id, program)
    this.#hold(true)
    this.#child.stdin.write(`run ${id} ${argv.map(quoted).join(' ')}${leavesOthers ? ' 2>/dev/null' : ''} &\n`)
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#obey(line)
  }

  #obey(line: string): void {
    const [, what, id = '', number] = /^(began|ended) (\d+) (\d+)$/.exec(line) ?? []
    if (what === 'began') this.#begin(id, Number(number))
    else this.#end(id, Number(number))
  }

  #begin(id: string, pid: number): void {
    const program = this.#asked.get(id)
    if (program === undefined) {
      // It counts as lost already.
      sendSignal(pid, 'SIGKILL')
      return
    }
    this.#asked.delete(id)
    this.#running.set(id, program)
    program.began(pid)
  }

  #end(id: string, status: number): void {
    const program = this.#running.get(id)
    if (program === undefined) return
    this.#running.delete(id)
    program.ended(status)
    if (this.#running.size + this.#asked.size > 0) return
    this.#hold(false)
    clearTimeout(this.#collecting)
    this.#collecting = setTimeout(() => this.#child.stdin.write(COLLECT), COLLECT_AFTER_MS).unref()
  }

  #lose(programs: Map<string, Program>): void {
    const lost = [...programs.values()]
    programs.clear()
    for (const program of lost) program.lost()
  }

  /** An agent with nothing to wait for may end. */
  #hold(waits: boolean): void {
    const { stdin, stdout, stderr } = this.#child
    for (const handle of [this.#child, stdin, stdout, stderr]) {
      if (!('ref' in handle && typeof handle.ref === 'function' && 'unref' in handle && typeof handle.unref === 'function')) continue
      if (waits) handle.ref()
      else handle.unref()
    }
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

let shell: LaunchingShell | undefined

function livingShell(): LaunchingShell {
  shell ??= new LaunchingShell((gone) => {
    if (shell === gone) shell = undefined
  })
  return shell
}

/**
 * Runs a program to its end, from the shell.
 * @throws CommandFailed; the signal's reason when it fires, behind the end of the program
 */
export function launchProgram(command: string, args: readonly string[], options: LaunchOptions = {}): Promise<void> {
  const { timeoutMs = LIMITS.hostCommandMs, signal, leavesOthers = false, onSpawn } = options
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const from = livingShell()
    let pid: number | undefined
    let isUnwanted = false
    const kill = (): void => {
      isUnwanted = true
      if (pid !== undefined) sendSignal(pid, 'SIGKILL')
    }
    const timer = setTimeout(kill, timeoutMs)
    signal?.addEventListener('abort', kill, { once: true })
    const settle = (failure: string | undefined): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', kill)
      if (signal?.aborted === true) reject(signal.reason)
      else if (failure === undefined) resolve()
      else reject(new CommandFailed(`${command} ${args[0] ?? ''}: ${failure}`))
    }
    from.run([command, ...args], leavesOthers, {
      began(told) {
        pid = told
        onSpawn?.()
        if (isUnwanted) kill()
      },
      ended(status) {
        pid = undefined
        if (status === 0) return settle(undefined)
        // What it said comes another way, and has arrived by the next turn.
        setImmediate(() => settle(`exit ${status}: ${from.said}`))
      },
      lost: () => settle('the shell that starts programs has ended'),
    })
  })
}
