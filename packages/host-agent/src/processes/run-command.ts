/** Runs a short program: no shell, bounded time, bounded output, a small environment of its own. */
import { spawn } from 'node:child_process'
import { LIMITS } from '@sandglass/contract'

const OUTPUT_BYTES = 64 * 1024
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export type CommandOptions = {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
  /** In a session of its own, its output thrown away: whatever it leaves running holds nothing of the agent's. */
  readonly detached?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly onSpawn?: (pid: number) => void
}

export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

/** @returns standard output @throws CommandFailed with what it said; AbortError when the signal fires */
export function runCommand(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { timeoutMs = LIMITS.hostCommandMs, signal, detached = false, env = {}, onSpawn } = options
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', detached ? 'ignore' : 'pipe', detached ? 'ignore' : 'pipe'],
      detached,
      env: { PATH, LANG: 'C.UTF-8', ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      ...(signal === undefined ? {} : { signal }),
    })
    let stdout = ''
    let stderr = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < OUTPUT_BYTES) stdout += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < OUTPUT_BYTES) stderr += text
    })
    if (child.pid !== undefined) onSpawn?.(child.pid)
    child.once('error', (cause) => reject(signal?.aborted === true ? signal.reason : new CommandFailed(`${command}: ${cause.message}`, { cause })))
    child.once('close', (code, killed) => {
      if (code === 0) resolve(stdout)
      else reject(new CommandFailed(`${command} ${args[0] ?? ''}: ${killed === null ? `exit ${code}` : `ended by ${killed}`}: ${stderr.trim().slice(-1_024)}`))
    })
  })
}
