/**
 * `@sandglass/sdk/mock`: the same client against a server in memory, for tests of programs that use the SDK.
 *
 * ```ts
 * const mock = new MockSandglass()
 * mock.program('make', ({ write }) => { write('built\n'); return 0 })
 * await using sandbox = await Sandbox.create({ client: mock.client })
 * ```
 *
 * The client is the real one, with its retries, sessions and parsing; only network and time are the mock's. Held to the real thing by one
 * suite that runs against both (test/mock-contract.ts). What it does not answer (terminals, archives, watches) it refuses in words.
 */
import { CodedError, type ErrorCode } from '@sandglass/contract/errors'
import type { ClientStatus } from '@sandglass/contract/gateway-frames'
import { PROBLEM_MEDIA_TYPE, problemOf } from '@sandglass/contract/problem'
import { Sandglass } from '../client.ts'
import { realWorld, type SocketHandlers, type SocketRequest, type World } from '../world.ts'
import { MockClock } from './clock.ts'
import type { MockFiles } from './files.ts'
import type { MockProcess, MockProgram } from './process.ts'
import { PROGRAMS } from './programs.ts'
import { answer, type MockRequest, startOf } from './routes.ts'
import { type MockSandbox, MockSandboxes } from './sandboxes.ts'
import { MockSocket } from './session.ts'

export type { MockFiles } from './files.ts'
export type { MockProgram, MockRun } from './process.ts'

/** What goes wrong, and when. */
export type MockFailure = {
  /** The error that is answered; `lost`: the connection breaks. */
  readonly error: ErrorCode | 'lost'
  /** Default: every method and path. */
  readonly method?: string
  readonly path?: RegExp
  /** How often. Default once. */
  readonly times?: number
  /** Only the answer is lost: what was asked for is done. Default false. */
  readonly afterwards?: boolean
}

const URL_OF_MOCK = 'http://sandglass.mock'
const KEY = 'sgk_mock'

export class MockSandglass {
  /** For the option `client` of the SDK's calls. */
  readonly client: Sandglass
  /** Requests so far, oldest first. */
  readonly requests: { readonly method: string; readonly path: string }[] = []
  readonly #clock = new MockClock()
  readonly #programs = new Map<string, MockProgram>(Object.entries(PROGRAMS))
  readonly #failures: { failure: MockFailure; left: number }[] = []
  readonly #sockets = new Set<MockSocket>()
  readonly #sandboxes: MockSandboxes
  #shell: MockProgram | undefined

  constructor() {
    this.#sandboxes = new MockSandboxes(URL_OF_MOCK, this.#clock, ({ argv, line }) => this.#programOf(argv, line))
    const world: World = {
      ...realWorld,
      fetch: (input, init) => this.#fetch(new Request(input, init)),
      connect: (request, handlers) => this.#connect(request, handlers),
      now: () => this.#clock.nowMs,
      timer: (ms, callback) => this.#clock.timer(ms, callback),
    }
    this.client = new Sandglass({ url: URL_OF_MOCK, apiKey: KEY, world })
  }

  /** Scripts a program, by its name or its whole path; the last one wins. */
  program(name: string, program: MockProgram): this {
    this.#programs.set(name, program)
    return this
  }

  /** Scripts every line for a shell (`exec.shell`, `spawnShell`). */
  shell(program: MockProgram): this {
    this.#shell = program
    return this
  }

  /** Lets something go wrong. Earlier failures come first. */
  fail(failure: MockFailure): this {
    this.#failures.push({ failure, left: failure.times ?? 1 })
    return this
  }

  /** Breaks every open session, as a network that breaks. */
  cutConnections(): void {
    for (const socket of [...this.#sockets]) socket.cut()
  }

  /** Lets time pass: deadlines of sandboxes, timeouts of commands and calls, `sleep`. */
  advance(ms: number): void {
    this.#clock.advance(ms)
  }

  /** Files of a sandbox, to prepare or look at without the client. @throws CodedError `sandbox_not_found` */
  files(idOrName: string): MockFiles {
    return this.#sandboxes.find(idOrName).files
  }

  #programOf(argv: readonly string[], line: string | undefined): MockProgram {
    const path = argv[0] ?? ''
    const found = line === undefined ? (this.#programs.get(path) ?? this.#programs.get(path.split('/').at(-1) ?? '')) : this.#shell
    if (found !== undefined) return found
    if (line !== undefined) throw new CodedError('executable_not_found', 'A mock has no shell; script one with mock.shell().')
    throw new CodedError('executable_not_found', `A mock has no program ${path}; script it with mock.program().`)
  }

  async #fetch(request: Request): Promise<Response> {
    const { pathname: path, searchParams: query } = new URL(request.url)
    const asked: MockRequest = { method: request.method, path, query, headers: request.headers, body: new Uint8Array(await request.arrayBuffer()) }
    request.signal.throwIfAborted()
    this.requests.push({ method: asked.method, path })
    const failure = this.#failureOf(asked)
    if (failure !== undefined && failure.afterwards !== true) return failedWith(failure)
    const answered = await aborted(request.signal, this.#answer(asked))
    return failure === undefined ? answered : failedWith(failure)
  }

  #failureOf({ method, path }: MockRequest): MockFailure | undefined {
    const due = this.#failures.find(({ failure, left }) => left > 0 && (failure.method ?? method) === method && (failure.path ?? /^/).test(path))
    if (due !== undefined) due.left -= 1
    return due?.failure
  }

  async #answer(request: MockRequest): Promise<Response> {
    try {
      return await answer(request, this.#sandboxes)
    } catch (error) {
      return problemResponse(error instanceof CodedError ? error : new CodedError('internal', String(error)))
    }
  }

  #connect({ url }: SocketRequest, handlers: SocketHandlers): MockSocket {
    const [, id = '', kind = ''] = /\/v1\/sandboxes\/([^/]+)\/(exec|terminal)/.exec(new URL(url).pathname) ?? []
    const open = (status: ClientStatus): MockProcess => begin(this.#sandboxes.live(decodeURIComponent(id)), status)
    const refusal = kind === 'exec' ? undefined : new CodedError('invalid_request', 'A mock has no terminals. Test them against a real installation.')
    const socket = new MockSocket(handlers, open, () => this.#sockets.delete(socket), refusal)
    this.#sockets.add(socket)
    return socket
  }
}

function begin(sandbox: MockSandbox, status: ClientStatus): MockProcess {
  if (status.type === 'attach') return sandbox.process(status.process_id)
  const { key, stdin, ...command } = status.process
  return sandbox.begin(startOf(command, key, stdin ?? false))
}

function problemResponse(error: CodedError): Response {
  return new Response(JSON.stringify(problemOf(error)), { status: error.status, headers: { 'content-type': PROBLEM_MEDIA_TYPE } })
}

/** @throws TypeError as `fetch` does when a connection breaks */
function failedWith({ error }: MockFailure): Response {
  if (error === 'lost') throw new TypeError('fetch failed')
  return problemResponse(new CodedError(error))
}

/** An answer, or the reason of the signal, whichever is first. */
function aborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
