/** A terminal in a sandbox, joined to this one: keys go in raw, the size follows, Ctrl-P Ctrl-Q leaves. */
import { type Sandbox, SandglassError, type Terminal, type TerminalOptions } from '@sandglass/sdk'
import { DetachKeys } from './detach-keys.ts'
import type { Io } from './io.ts'
import { passedOn } from './passed-on.ts'

export type JoinedTerminalOptions = Omit<TerminalOptions, 'cols' | 'rows' | 'onGap'> & {
  /** Pass keys on. */
  readonly interactive: boolean
  /** Stops waiting, for example at a signal; the terminal is left running. */
  readonly stop?: AbortSignal
}

async function keys(io: Io, terminal: Terminal): Promise<'detached' | 'closed'> {
  const sequence = new DetachKeys()
  for await (const bytes of io.stdin) {
    const { pass, detach } = io.inputIsTerminal ? sequence.take(bytes) : { pass: bytes, detach: false }
    if (pass.byteLength > 0) await terminal.write(pass)
    if (detach) return 'detached'
  }
  // End of file on a line that is not a terminal: what Ctrl-D is on one that is.
  await terminal.write('\u0004')
  return 'closed'
}

async function show(io: Io, terminal: Terminal): Promise<'ended'> {
  for await (const bytes of terminal.output) await io.stdout.write(bytes)
  return 'ended'
}

/** @returns the exit code of what ran in it, or 0 when it was left. @throws SandglassError, ReaderGone */
export async function joinTerminal(io: Io, sandbox: Sandbox, options: JoinedTerminalOptions): Promise<number> {
  const { interactive, stop, ...request } = options
  const terminal = await sandbox.terminal({ ...request, ...io.size() })
  const restore = interactive ? io.rawInput() : io.rawOutput()
  const stopResizing = io.onResize(() => {
    const { cols, rows } = io.size()
    terminal.resize(cols, rows)
  })
  const stopped = Promise.withResolvers<never>()
  const onStop = () => stopped.reject(stop?.reason)
  stop?.addEventListener('abort', onStop, { once: true })
  try {
    const typed = interactive ? quietly(keys(io, terminal)) : new Promise<never>(() => undefined)
    const shown = show(io, terminal)
    const first = await Promise.race([shown, typed, stopped.promise, io.stdout.gone])
    if (first === 'detached') return await left(io, sandbox, terminal)
    if (first === 'closed') await Promise.race([shown, stopped.promise])
    return passedOn(await terminal.exit)
  } finally {
    terminal.detach()
    stop?.removeEventListener('abort', onStop)
    stopResizing()
    restore()
    if (interactive) io.closeInput()
  }
}

/** Keys typed after the end have nowhere to go, which is no error. */
async function quietly(typed: Promise<'detached' | 'closed'>): Promise<'detached' | 'closed'> {
  try {
    return await typed
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'stdin_closed') return 'closed'
    throw error
  }
}

async function left(io: Io, sandbox: Sandbox, terminal: Terminal): Promise<number> {
  await io.stderr.write(`\r\nleft; come back with: sandglass shell ${sandbox.name ?? sandbox.id} --attach ${terminal.id}\r\n`)
  return 0
}
