/**
 * What a case sees of one sandbox: commands, processes, files, terminals. Narrow on purpose, so that a deliberate defect is a small wrapper.
 *
 * Failures are errors with a `code` of the registry; a non-zero exit is a result.
 */
export type Command = {
  readonly argv?: readonly string[]
  readonly shell?: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly user?: string
  readonly timeoutMs?: number
  readonly killGraceMs?: number
  /** Fed, then closed. Absent: no standard input. */
  readonly stdin?: Uint8Array
}

export type Outcome = {
  readonly processId: string
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  /** It exited, but a descendant still holds its output. */
  readonly outputOpen: boolean
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
}

export type Exit = Omit<Outcome, 'stdout' | 'stderr'>

/** A process that is followed, with its standard input open. */
export type Running = {
  readonly id: string
  readonly stdout: AsyncIterable<Uint8Array>
  readonly stderr: AsyncIterable<Uint8Array>
  /** Resolves when the bytes are taken, not before: back-pressure. */
  write(bytes: Uint8Array): Promise<void>
  /** End of file. */
  end(): Promise<void>
  /** Leaves; the process goes on. */
  detach(): Promise<void>
  readonly exit: Promise<Exit>
}

export type Listed = { readonly id: string; readonly argv: readonly string[]; readonly state: 'running' | 'exited'; readonly pid: number }

export type OutputStream = 'stdout' | 'stderr'

/** A path is text, or bytes where a name is not UTF-8. */
export type Path = string | Uint8Array

export type Entry = { readonly name: Uint8Array; readonly type: string; readonly size: number }

export type Files = {
  write(path: Path, content: AsyncIterable<Uint8Array> | Uint8Array, options?: { user?: string }): Promise<{ size: number }>
  read(path: Path): Promise<Uint8Array>
  stream(path: Path): AsyncIterable<Uint8Array>
  stat(path: Path): Promise<{ type: string; size: number }>
  list(path: Path): Promise<readonly Entry[]>
  remove(path: Path, options?: { recursive?: boolean }): Promise<void>
  move(from: Path, to: Path): Promise<void>
  makeDirectory(path: Path): Promise<void>
  /** Unpacks a tar below a directory. */
  unpack(path: Path, tar: Uint8Array): Promise<{ entries: number }>
  /** Downloads into a file of this machine, as a user would with the command line. */
  download(path: Path, localPath: string): Promise<void>
}

export type TerminalOptions = {
  /** Left out on return: the size stays as it is. */
  readonly cols?: number
  readonly rows?: number
  /** The program in it; the user's login shell when it is absent. */
  readonly argv?: readonly string[]
  /** Comes back to a terminal: its id, and the offset of the first byte that is wanted. */
  readonly id?: string
  readonly since?: number
}

/** A part of what a terminal printed, and the offset of its first byte since the terminal began. A jump is a gap. */
export type Printed = { readonly offset: number; readonly bytes: Uint8Array }

export type Terminal = {
  readonly id: string
  readonly output: AsyncIterable<Printed>
  write(text: string): Promise<void>
  resize(cols: number, rows: number): Promise<void>
  /** Leaves; the terminal lives on. */
  detach(): Promise<void>
  /** Ends it with all that runs in it. */
  close(): Promise<void>
  /** How it ended; rejects for a client that has left. */
  readonly exit: Promise<Pick<Exit, 'exitCode' | 'signal'>>
}

export type Sandboxed = {
  readonly id: string
  exec(command: Command): Promise<Outcome>
  spawn(command: Command): Promise<Running>
  processes(): Promise<readonly Listed[]>
  /** Signals a process and its descendants. */
  kill(processId: string, signal: 'TERM' | 'KILL' | 'STOP' | 'CONT'): Promise<void>
  /** What a process has written so far, from an offset on. */
  output(processId: string, stream: OutputStream, since: number): Promise<Uint8Array>
  /** The same, and goes on until the process ends; a jump of the offset is a gap. Leaving the loop leaves the connection. */
  follow(processId: string, stream: OutputStream, since: number): AsyncIterable<Printed>
  resizeProcess(processId: string, cols: number, rows: number): Promise<void>
  readonly files: Files
  terminal(options: TerminalOptions): Promise<Terminal>
}
