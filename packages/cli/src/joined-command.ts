/** A command in a sandbox whose streams are joined to those of this process. */
import { type Argv, type ProcessExit, type Sandbox, SandglassError, type Spawned, type SpawnOptions } from '@sandglass/sdk'
import type { Io } from './io.ts'
import type { OutputPipe } from './output-pipe.ts'
import { passedOn } from './passed-on.ts'

export type JoinedOptions = Pick<SpawnOptions, 'cwd' | 'env' | 'user' | 'timeoutMs' | 'signal'> & {
  /** Join standard input. */
  readonly interactive: boolean
  /** Called when it runs. */
  readonly onStarted?: (spawned: Spawned) => void
}

const END_TIMEOUT_MS = 5_000

async function pump(from: AsyncIterable<Uint8Array>, to: OutputPipe): Promise<void> {
  for await (const bytes of from) await to.write(bytes)
}

/** Input flows as fast as the command reads; a command that stops reading is no error. */
async function feed(io: Io, spawned: Spawned): Promise<void> {
  try {
    for await (const bytes of io.stdin) await spawned.stdin.write(bytes)
    spawned.stdin.close()
  } catch (error) {
    if (!(error instanceof SandglassError) || error.code !== 'stdin_closed') throw error
  }
}

/** @returns the exit code to pass on. @throws SandglassError, ReaderGone (the command has been ended then), the signal's reason */
export async function runJoined(io: Io, sandbox: Sandbox, argv: Argv, options: JoinedOptions): Promise<number> {
  const { interactive, onStarted, ...command } = options
  const spawned = await sandbox.spawn(argv, { ...command, stdin: interactive })
  onStarted?.(spawned)
  const failed = Promise.withResolvers<never>()
  if (interactive) feed(io, spawned).catch((error: unknown) => failed.reject(error))
  let exit: ProcessExit
  try {
    const streams = Promise.all([pump(spawned.stdout, io.stdout), pump(spawned.stderr, io.stderr)])
    await Promise.race([streams, failed.promise, io.stdout.gone])
    exit = await spawned.exit
  } catch (error) {
    await end(spawned)
    throw error
  } finally {
    spawned.detach()
    if (interactive) io.closeInput()
  }
  return passedOn(exit)
}

/** The command would go on unseen. That it has ended by itself meanwhile, or cannot be reached, changes nothing of what is reported. */
async function end(spawned: Spawned): Promise<void> {
  try {
    await spawned.kill({ timeoutMs: END_TIMEOUT_MS })
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
  }
}
