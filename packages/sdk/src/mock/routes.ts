/** What a mock answers: the routes of the API that programs use most, by the contract's own schemas. */
import { CodedError } from '@sandglass/contract/errors'
import { MakeDirectorySchema, MoveFileSchema } from '@sandglass/contract/file'
import { type Exec, ExecSchema, SignalProcessSchema } from '@sandglass/contract/process'
import { CreateSandboxSchema, ExtendSandboxSchema, UpdateSandboxSchema } from '@sandglass/contract/sandbox'
import { parserOf } from '@sandglass/contract/schema'
import { base64OfBytes, bytesOfBase64, bytesOfText, textOfBytes } from '../encoding.ts'
import { streamOf } from '../streams.ts'
import type { MockProcess } from './process.ts'
import type { MockSandbox, MockSandboxes, Started } from './sandboxes.ts'

export type MockRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: Uint8Array
}

const creates = parserOf(CreateSandboxSchema)
const updates = parserOf(UpdateSandboxSchema)
const extensions = parserOf(ExtendSandboxSchema)
const execs = parserOf(ExecSchema)
const signals = parserOf(SignalProcessSchema)
const directories = parserOf(MakeDirectorySchema)
const moves = parserOf(MoveFileSchema)

const json = (status: number, value: unknown): Response => Response.json(value, { status })
const empty = (): Response => new Response(null, { status: 204 })
const bodyOf = (request: MockRequest): unknown => JSON.parse(request.body.byteLength === 0 ? '{}' : textOfBytes(request.body))

type Handler = (request: MockRequest, sandboxes: MockSandboxes, parts: readonly string[]) => Response | Promise<Response>

const inside =
  (handler: (sandbox: MockSandbox, request: MockRequest, process: string) => Response | Promise<Response>): Handler =>
  (request, sandboxes, [id = '', process = '']) =>
    handler(sandboxes.live(id), request, process)

const ROUTES: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  [
    'POST',
    /^\/v1\/sandboxes$/,
    (request, all) => json(201, all.create(creates.parse(bodyOf(request)), request.headers.get('idempotency-key') ?? undefined).resource),
  ],
  ['GET', /^\/v1\/sandboxes$/, ({ query }, all) => json(200, { items: listed(all, query), next_cursor: null })],
  ['GET', /^\/v1\/sandboxes\/([^/]+)$/, (_, all, [id = '']) => json(200, all.find(id).resource)],
  [
    'DELETE',
    /^\/v1\/sandboxes\/([^/]+)$/,
    (_, all, [id = '']) => {
      const sandbox = all.find(id)
      if (!sandbox.isDeleted) sandbox.end('deleted: on request')
      return empty()
    },
  ],
  [
    'PATCH',
    /^\/v1\/sandboxes\/([^/]+)$/,
    (request, all, [id = '']) => {
      const sandbox = all.kept(id)
      all.update(sandbox, updates.parse(bodyOf(request)))
      return json(200, sandbox.resource)
    },
  ],
  [
    'POST',
    /^\/v1\/sandboxes\/([^/]+)\/extend$/,
    (request, all, [id = '']) => {
      const sandbox = all.kept(id)
      all.extend(sandbox, extensions.parse(bodyOf(request)).ttl_seconds)
      return json(200, sandbox.resource)
    },
  ],
  [
    'POST',
    /^\/v1\/sandboxes\/([^/]+)\/(start|stop)$/,
    (request, all, [id = '', want = '']) => {
      const sandbox = all.kept(id)
      const key = request.headers.get('idempotency-key') ?? undefined
      if (want === 'start') sandbox.start(key)
      else sandbox.stop(key)
      return json(200, sandbox.resource)
    },
  ],
  ['POST', /^\/v1\/sandboxes\/([^/]+)\/exec$/, inside((sandbox, request) => exec(sandbox, execs.parse(bodyOf(request))))],
  ['GET', /^\/v1\/sandboxes\/([^/]+)\/processes$/, inside(({ processes }) => json(200, { items: processes.map((process) => process.record()) }))],
  ['GET', /^\/v1\/sandboxes\/([^/]+)\/processes\/([^/]+)$/, inside((sandbox, _, id) => json(200, sandbox.process(id).record()))],
  ['POST', /^\/v1\/sandboxes\/([^/]+)\/processes\/([^/]+)\/signal$/, inside((sandbox, request, id) => signal(sandbox.process(id), request))],
  ['GET', /^\/v1\/sandboxes\/([^/]+)\/processes\/([^/]+)\/output$/, inside((sandbox, request, id) => output(sandbox.process(id), request))],
  ['GET', /^\/v1\/sandboxes\/([^/]+)\/files$/, inside((sandbox, { query }) => content(sandbox, pathOf(query)))],
  [
    'PUT',
    /^\/v1\/sandboxes\/([^/]+)\/files$/,
    inside((sandbox, { query, body }) => {
      const mode = query.get('mode')
      const { size, etag } = sandbox.files.write(pathOf(query), body, { parents: query.get('parents') === '1', ...(mode === null ? {} : { mode }) })
      return json(201, { size, etag: etag ?? '' })
    }),
  ],
  [
    'DELETE',
    /^\/v1\/sandboxes\/([^/]+)\/files$/,
    inside((sandbox, { query }) => {
      sandbox.files.remove(pathOf(query), query.get('recursive') === '1')
      return empty()
    }),
  ],
  ['GET', /^\/v1\/sandboxes\/([^/]+)\/files\/stat$/, inside((sandbox, { query }) => json(200, sandbox.files.stat(pathOf(query))))],
  [
    'GET',
    /^\/v1\/sandboxes\/([^/]+)\/files\/list$/,
    inside((sandbox, { query }) => json(200, { items: sandbox.files.list(pathOf(query)), next_cursor: null })),
  ],
  [
    'POST',
    /^\/v1\/sandboxes\/([^/]+)\/files\/mkdir$/,
    inside((sandbox, request) => {
      const { path, path_b64, parents } = directories.parse(bodyOf(request))
      return json(201, sandbox.files.makeDirectory(textOf(path, path_b64), parents ?? false))
    }),
  ],
  [
    'POST',
    /^\/v1\/sandboxes\/([^/]+)\/files\/move$/,
    inside((sandbox, request) => {
      const { from, from_b64, to, to_b64, overwrite } = moves.parse(bodyOf(request))
      return json(200, sandbox.files.move(textOf(from, from_b64), textOf(to, to_b64), overwrite ?? true))
    }),
  ],
]

/** @throws CodedError */
export async function answer(request: MockRequest, sandboxes: MockSandboxes): Promise<Response> {
  for (const [method, path, handler] of ROUTES) {
    const match = request.method === method ? path.exec(request.path) : null
    if (match !== null) return handler(request, sandboxes, match.slice(1).map(decodeURIComponent))
  }
  throw new CodedError('route_not_found', `A mock does not answer ${request.method} ${request.path}. Test it against a real installation.`)
}

function listed(sandboxes: MockSandboxes, query: URLSearchParams): unknown[] {
  const wanted = (name: string, value: string): boolean => (query.get(name) ?? value) === value
  const [key, ...rest] = (query.get('metadata') ?? '').split('=')
  return sandboxes.all
    .map(({ resource }) => resource)
    .filter((item) => item.desired !== 'deleted' || query.get('include_ended') === 'true')
    .filter((item) => wanted('status', item.status) && wanted('name', item.name ?? '') && wanted('template', item.template.name))
    .filter((item) => key === undefined || key === '' || item.metadata[key] === rest.join('='))
}

const pathOf = (query: URLSearchParams): string => query.get('path') ?? ''

function textOf(text: string | undefined, base64: string | undefined): string {
  return text ?? textOfBytes(bytesOfBase64(base64 ?? ''))
}

function content(sandbox: MockSandbox, path: string): Response {
  const bytes = sandbox.files.read(path)
  return new Response(bytes, { headers: { etag: sandbox.files.stat(path).etag ?? '', 'content-length': String(bytes.byteLength) } })
}

/** @throws CodedError `invalid_request` unless there is exactly one of argv, argv_b64 and shell */
export function commandOf(body: Pick<Exec, 'argv' | 'argv_b64' | 'shell'>): Pick<Started, 'argv' | 'line'> {
  const { argv, argv_b64, shell } = body
  if ([argv, argv_b64, shell].filter((given) => given !== undefined).length !== 1)
    throw new CodedError('invalid_request', 'Give one of argv, argv_b64 and shell.')
  if (shell !== undefined) return { argv: ['bash', '-lc', shell], line: shell }
  return { argv: argv ?? argv_b64?.map((argument) => textOfBytes(bytesOfBase64(argument))) ?? [], line: undefined }
}

export function startOf(body: Omit<Exec, 'stdin'>, key: string | undefined, stdin: boolean): Started {
  return { ...commandOf(body), key, env: body.env ?? {}, cwd: body.cwd ?? '/root', user: body.user ?? 'root', stdin, timeoutMs: body.timeout_ms }
}

async function exec(sandbox: MockSandbox, body: Exec): Promise<Response> {
  const process = sandbox.begin(startOf(body, body.process_key, body.stdin !== undefined && body.stdin !== false))
  if (typeof body.stdin === 'string') {
    process.input(body.stdin_encoding === 'base64' ? bytesOfBase64(body.stdin) : bytesOfText(body.stdin), 0, '')
    process.closeInput()
  }
  if (body.background === true) return json(201, process.record())
  await process.ended
  const record = process.record()
  return json(200, {
    process_id: record.id,
    exit_code: record.exit_code,
    signal: record.signal,
    stdout: base64OfBytes(process.bytes('stdout')),
    stderr: base64OfBytes(process.bytes('stderr')),
    encoding: { stdout: 'base64', stderr: 'base64' },
    truncated: false,
    timed_out: record.timed_out,
    output_open: false,
    duration_ms: record.duration_ms ?? 0,
  })
}

function signal(process: MockProcess, request: MockRequest): Response {
  const { signal: name } = signals.parse(bodyOf(request))
  if (!process.running) throw new CodedError('process_exited')
  process.kill(name)
  return json(200, process.record())
}

function output(process: MockProcess, { query }: MockRequest): Response {
  const stream = query.get('stream') === 'stderr' ? 'stderr' : 'stdout'
  const since = Number(query.get('since') ?? '0')
  const headers = { 'sandglass-offset': String(since), 'content-type': 'application/octet-stream' }
  if (query.get('follow') !== '1') return new Response(process.bytes(stream, since).slice(), { headers })
  return new Response(streamOf(followed(process, stream, since)), { headers })
}

async function* followed(process: MockProcess, stream: 'stdout' | 'stderr', since: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = since; ; ) {
    const more = process.bytes(stream, at)
    at += more.byteLength
    if (more.byteLength > 0) yield more
    else if (!process.running) return
    else {
      await new Promise<void>((resolve) => {
        const stop = process.listen(() => {
          stop()
          resolve()
        })
      })
    }
  }
}
