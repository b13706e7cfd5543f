/** A scripted process: a function in place of a program, with streams, signals and a timeout that behave. */
import { CodedError } from '@sandglass/contract/errors'
import type { Process as WireProcess } from '@sandglass/contract/process'
import { concatBytes } from '../encoding.ts'
import type { MockClock } from './clock.ts'
import type { MockFiles } from './files.ts'

/** What a scripted program is given. */
export type MockRun = {
  readonly argv: readonly string[]
  /** The line, when it was started by a shell. */
  readonly line: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Standard input to its end. */
  readonly stdin: AsyncIterable<Uint8Array>
  readonly write: (output: string | Uint8Array) => void
  readonly writeError: (output: string | Uint8Array) => void
  /** Waits, also by `advance`. */
  readonly sleep: (ms: number) => Promise<void>
  /** Aborted when the process is ended by a signal or a timeout; what it does then changes nothing of how it ended. */
  readonly signal: AbortSignal
  readonly files: MockFiles
}

/** @returns its exit code */
export type MockProgram = (run: MockRun) => number | Promise<number>

export type MockStart = {
  readonly id: string
  readonly key: string | undefined
  readonly argv: readonly string[]
  readonly line: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly user: string
  readonly stdin: boolean
  readonly timeoutMs: number | undefined
}

type StreamName = 'stdout' | 'stderr'
type Ending = { readonly exitCode: number | null; readonly signal: string | null; readonly timedOut: boolean }

const encoder = new TextEncoder()
/** The exit code of a program that throws, as of one that crashes. */
const CRASHED = 70

export class MockProcess {
  readonly start: MockStart
  readonly #clock: MockClock
  readonly #output: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] }
  readonly #input: Uint8Array[] = []
  readonly #stop = new AbortController()
  readonly #ended = Promise.withResolvers<void>()
  readonly #listeners = new Set<() => void>()
  readonly #startedMs: number
  #inputBytes = 0
  /** The last bytes of input that one writer gave. */
  #stretch = { writer: '', from: 0 }
  #inputOpen: boolean
  #ending: (Ending & { readonly atMs: number }) | undefined

  constructor(start: MockStart, program: MockProgram, files: MockFiles, clock: MockClock) {
    this.start = start
    this.#clock = clock
    this.#startedMs = Math.round(clock.nowMs)
    this.#inputOpen = start.stdin
    const { timeoutMs } = start
    const cancel = timeoutMs === undefined ? () => undefined : clock.timer(timeoutMs, () => this.#end({ exitCode: null, signal: 'TERM', timedOut: true }))
    void this.#ended.promise.then(cancel)
    void this.#run(program, files)
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get running(): boolean {
    return this.#ending === undefined
  }

  /** Calls back whenever there is more to tell; the answer stops it. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  bytes(stream: StreamName, since = 0): Uint8Array {
    return concatBytes(this.#output[stream]).subarray(since)
  }

  get inputBytes(): number {
    return this.#inputBytes
  }

  /** As the guest does: what this writer has given already is left out. @throws CodedError `stdin_offset` when another one wrote there */
  input(bytes: Uint8Array, offset: number, writer: string): void {
    const ownFrom = this.#stretch.writer === writer ? this.#stretch.from : this.#inputBytes
    if (offset < ownFrom || offset > this.#inputBytes) throw new CodedError('stdin_offset')
    const fresh = bytes.slice(this.#inputBytes - offset)
    if (fresh.byteLength === 0) return
    if (this.#stretch.writer !== writer) this.#stretch = { writer, from: this.#inputBytes }
    this.#input.push(fresh)
    this.#inputBytes += fresh.byteLength
    this.#tell()
  }

  closeInput(): void {
    this.#inputOpen = false
    this.#tell()
  }

  /** Ends it, if it is a signal that does. */
  kill(signal: string): void {
    if (!['CONT', 'STOP', 'WINCH'].includes(signal)) this.#end({ exitCode: null, signal, timedOut: false })
  }

  record(): WireProcess {
    const { id, key, argv, cwd, user } = this.start
    const ending = this.#ending
    const size = (stream: StreamName) => ({ start: 0, end: this.bytes(stream).byteLength })
    return {
      id,
      key: key ?? null,
      argv: [...argv],
      cwd,
      user,
      tty: false,
      state: ending === undefined ? 'running' : 'exited',
      pid: 1,
      exit_code: ending?.exitCode ?? null,
      signal: ending?.signal ?? null,
      timed_out: ending?.timedOut ?? false,
      started_at_ms: this.#startedMs,
      ended_at_ms: ending?.atMs ?? null,
      duration_ms: ending === undefined ? null : ending.atMs - this.#startedMs,
      stdout: size('stdout'),
      stderr: size('stderr'),
      stdin: { accepted: this.#inputBytes, open: this.#inputOpen && ending === undefined },
      output_open: false,
      truncated: false,
      cpu_ms: 0,
      memory_bytes: 0,
      cols: null,
      rows: null,
    }
  }

  async #run(program: MockProgram, files: MockFiles): Promise<void> {
    const { argv, line, env, cwd } = this.start
    const write = (stream: StreamName) => (output: string | Uint8Array) => {
      if (this.#ending !== undefined) return
      this.#output[stream].push(typeof output === 'string' ? encoder.encode(output) : output.slice())
      this.#tell()
    }
    // Nothing wakes it once it is ended, and no timer of it holds up the end of a test.
    const sleep = (ms: number) =>
      new Promise<void>((resolve) => {
        if (this.#stop.signal.aborted) return
        const cancel = this.#clock.timer(ms, resolve)
        this.#stop.signal.addEventListener('abort', cancel, { once: true })
      })
    const run: MockRun = {
      argv,
      line,
      env,
      cwd,
      stdin: this.#stdin(),
      write: write('stdout'),
      writeError: write('stderr'),
      sleep,
      signal: this.#stop.signal,
      files,
    }
    try {
      const exitCode = await program(run)
      this.#end({ exitCode, signal: null, timedOut: false })
    } catch (error) {
      run.writeError(`${error instanceof Error ? error.message : String(error)}\n`)
      this.#end({ exitCode: CRASHED, signal: null, timedOut: false })
    }
  }

  async *#stdin(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const next = this.#input.shift()
      if (next !== undefined) yield next
      else if (!this.#inputOpen || this.#ending !== undefined) return
      else {
        await new Promise<void>((resolve) => {
          const stop = this.listen(() => {
            stop()
            resolve()
          })
        })
      }
    }
  }

  #end(ending: Ending): void {
    if (this.#ending !== undefined) return
    this.#ending = { ...ending, atMs: Math.round(this.#clock.nowMs) }
    this.#stop.abort()
    this.#ended.resolve()
    this.#tell()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
