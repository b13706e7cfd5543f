/**
 * The compiled code of a process of ours, kept between its starts. A process that strips types and compiles for itself holds what it needed for
 * that, some 20 MiB, as long as it lives, so before the first start a process of its own does it and ends. Code that has changed since is compiled
 * by whoever loads it, and kept when that one ends.
 */
import { execFile } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import type { Owner } from './atomic-file.ts'

const COMPILE_MS = 60_000

const run = promisify(execFile)

/**
 * @param folder of one user alone: nobody runs what another user could have written
 * @param command the process, as the user whose folder it is; without an argument it would serve
 */
export async function compileAhead(folder: string, owner: Owner, command: { readonly command: string; readonly args: readonly string[] }): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  chownSync(folder, owner.uid, owner.gid)
  if (readdirSync(folder).length > 0) return
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', NODE_COMPILE_CACHE: folder }
  // What this does not compile is compiled by who needs it: slower and larger, nothing else.
  await run(command.command, [...command.args, COMPILE_ONLY], { env, cwd: '/', timeout: COMPILE_MS, killSignal: 'SIGKILL' }).catch(() => undefined)
}
