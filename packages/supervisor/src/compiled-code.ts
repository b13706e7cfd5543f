/**
 * The compiled code of a process of ours, kept between its starts. A process that strips types and compiles for itself holds what it needed for
 * that, some 20 MiB, as long as it lives, so before its first start, and the first behind another Node.js or another version of ours, a process of
 * its own does it and ends. Code that has changed otherwise is compiled by whoever loads it, and kept when that one ends.
 */
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { VERSION } from '@sandglass/contract'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import type { Owner } from './atomic-file.ts'

const COMPILE_MS = 60_000
/** Every user goes through to its own folder, whatever the umask of who calls `up`. */
const FOLDER_MODE = 0o755

const run = promisify(execFile)

/**
 * @param folder of one user alone: nobody runs what another user could have written
 * @param command the process, as the user whose folder it is; without an argument it would serve
 * @param signal ends it early
 */
export async function compileAhead(
  folder: string,
  owner: Owner,
  command: { readonly command: string; readonly args: readonly string[] },
  signal?: AbortSignal,
): Promise<void> {
  for (const place of [dirname(folder), folder]) {
    mkdirSync(place, { recursive: true })
    chmodSync(place, FOLDER_MODE)
  }
  chownSync(folder, owner.uid, owner.gid)
  // Beside the folder, where its owner cannot lead a writer astray.
  const note = `${folder}.compiled-by`
  const by = `${process.version} ${VERSION}\n`
  if (read(note) === by) return
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', NODE_COMPILE_CACHE: folder }
  try {
    await run(command.command, [...command.args, COMPILE_ONLY], { env, cwd: '/', timeout: COMPILE_MS, killSignal: 'SIGKILL', signal })
    writeFileSync(note, by)
  } catch {
    // What this does not compile is compiled by who needs it: slower and larger, nothing else.
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
