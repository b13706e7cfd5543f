/** Programs that only a clone of the repository has: its tests, its benchmark. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { exitCodeOfSignal } from './exit-code.ts'
import type { Io } from './io.ts'
import { UsageError } from './usage-error.ts'

export const REPOSITORY = join(import.meta.dirname, '../../..')

/** Runs it to its end, passing on signals. @param cwd default: where the user is @returns its exit code @throws UsageError outside of a clone */
export async function runProgram(io: Io, program: string, argv: readonly string[], cwd?: string): Promise<number> {
  const main = join(REPOSITORY, program)
  if (!existsSync(main)) throw new UsageError(`${main} is missing: it runs in a clone of the repository`)
  const child = spawn(process.execPath, [main, ...argv], { stdio: 'inherit', cwd })
  const stop = io.onSignal((signal) => child.kill(`SIG${signal}`))
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code, signal) => resolve(code ?? exitCodeOfSignal((signal ?? 'SIGKILL').replace(/^SIG/, ''))))
    })
  } finally {
    stop()
  }
}
