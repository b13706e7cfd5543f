/** The sandbox of the cases, on the SDK and so on the whole path: gateway, host agent, guest agent, gVisor. */
import type { RemoteProcess, Sandbox, Spawned } from '@sandglass/sdk'
import { collect } from './bytes.ts'
import { rawHttp, succeeded } from './raw-http.ts'
import type { Command, Entry, Exit, Files, Outcome, OutputStream, Printed, Running, Sandboxed, Terminal, TerminalOptions } from './sandboxed.ts'

type Ended = Awaited<Spawned['exit']>

const exitOf = (processId: string, { exitCode, signal, timedOut, outputOpen }: Ended): Exit => ({ processId, exitCode, signal, timedOut, outputOpen })

async function exec(sandbox: Sandbox, { argv, shell, ...options }: Command): Promise<Outcome> {
  const result = shell === undefined ? await sandbox.exec(argv ?? [], options) : await sandbox.exec.shell(shell, options)
  const { processId, exitCode, signal, timedOut, outputOpen, stdoutBytes, stderrBytes } = result
  return { processId, exitCode, signal, timedOut, outputOpen, stdout: stdoutBytes, stderr: stderrBytes }
}

async function spawn(sandbox: Sandbox, { argv, shell, stdin: _, ...options }: Command): Promise<Running> {
  const spawned =
    shell === undefined ? await sandbox.spawn(argv ?? [], { ...options, stdin: true }) : await sandbox.spawnShell(shell, { ...options, stdin: true })
  const exit = spawned.exit.then((ended) => exitOf(spawned.id, ended))
  // Who waits for it sees its error; a test that only wants the start must not fail by it.
  exit.catch(() => undefined)
  return {
    id: spawned.id,
    stdout: spawned.stdout,
    stderr: spawned.stderr,
    write: (bytes) => spawned.stdin.write(bytes),
    end: async () => spawned.stdin.close(),
    detach: async () => spawned.detach(),
    exit,
  }
}

function filesOf({ files }: Sandbox): Files {
  return {
    write: (path, content, options) => files.write(path, content, options),
    read: (path) => files.read(path),
    async *stream(path) {
      yield* (await files.open(path)).body
    },
    stat: (path) => files.stat(path),
    async list(path) {
      const entries: Entry[] = []
      for await (const { nameBytes, type, size } of files.list(path)) entries.push({ name: nameBytes, type, size })
      return entries
    },
    remove: (path, options) => files.remove(path, options),
    async move(from, to) {
      await files.move(from, to)
    },
    async makeDirectory(path) {
      await files.mkdir(path)
    },
    unpack: (path, tar) => files.writeArchive(path, tar),
    download: (path, localPath) => files.download(path, localPath),
  }
}

async function* follow(process: Promise<RemoteProcess>, stream: OutputStream, since: number): AsyncGenerator<Printed> {
  const leave = new AbortController()
  let position = since
  const onGap = ({ to }: { readonly to: number }): void => {
    position = to
  }
  try {
    for await (const bytes of (await process).output({ stream, since, follow: true, onGap, signal: leave.signal })) {
      yield { offset: position, bytes }
      position += bytes.byteLength
    }
  } finally {
    leave.abort()
  }
}

async function terminal(sandbox: Sandbox, { argv, since, ...options }: TerminalOptions): Promise<Terminal> {
  // The SDK tells of a gap when the reader comes to it, just before the bytes behind it.
  let position = since ?? 0
  const opened = await sandbox.terminal({
    ...options,
    since,
    program: argv === undefined ? undefined : { argv },
    onGap: (gap) => {
      position = gap.to
    },
  })
  async function* output(): AsyncGenerator<Printed> {
    for await (const bytes of opened.output) {
      yield { offset: position, bytes }
      position += bytes.byteLength
    }
  }
  const exit = opened.exit.then(({ exitCode, signal }) => ({ exitCode, signal }))
  // Who waits for it sees its error.
  exit.catch(() => undefined)
  return {
    id: opened.id,
    output: output(),
    exit,
    close: () => opened.close(),
    write: (text) => opened.write(text),
    resize: async (cols, rows) => opened.resize(cols, rows),
    detach: async () => opened.detach(),
  }
}

/** @param apiKey for what the SDK has no call for */
export function sdkSandbox(sandbox: Sandbox, apiKey: string): Sandboxed {
  const found = (id: string): Promise<RemoteProcess> => sandbox.process(id)
  return {
    id: sandbox.id,
    exec: (command) => exec(sandbox, command),
    spawn: (command) => spawn(sandbox, command),
    processes: async () => (await sandbox.processes()).map(({ id, resource }) => ({ id, argv: resource.argv, state: resource.state, pid: resource.pid })),
    kill: async (id, signal) => (await found(id)).signal(signal),
    output: async (id, stream, since) => collect((await found(id)).output({ stream, since })),
    follow: (id, stream, since) => follow(found(id), stream, since),
    async resizeProcess(id, cols, rows) {
      const path = `/v1/sandboxes/${sandbox.id}/processes/${id}/resize`
      const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
      succeeded(await rawHttp(sandbox.resource.gateway_url, { method: 'POST', path, headers, body: JSON.stringify({ cols, rows }) }))
    },
    files: filesOf(sandbox),
    terminal: (options) => terminal(sandbox, options),
  }
}
