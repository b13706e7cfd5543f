/**
 * Programs of Debian that only a peer needs: taken where they are installed, else fetched and unpacked into the cache. Nothing is installed
 * on the machine, so no service starts and no user is made.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '@sandglass/host-agent/processes/run-command'

const SYSTEM_PLACES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const LIBRARIES = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu']
const FETCH_MS = 120_000

export type DebianProgram = { readonly path: string; readonly env: Readonly<Record<string, string>> }
export type DebianWish = { readonly program: string; readonly packages: readonly string[]; readonly cache: string }

const placesBelow = (folder: string): string[] => SYSTEM_PLACES.map((place) => join(folder, place))

function found(program: string, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path))
}

/** @throws Error saying what to type when it cannot be had */
export async function debianProgram({ program, packages, cache }: DebianWish): Promise<DebianProgram> {
  const installed = found(program, SYSTEM_PLACES)
  if (installed !== undefined) return { path: installed, env: {} }
  const folder = join(cache, 'peers', program)
  if (!existsSync(folder)) await unpack(packages, folder)
  const path = found(program, placesBelow(folder))
  if (path === undefined) throw new Error(`${packages.join(', ')} did not hold ${program}. Type: apt-get install ${packages.join(' ')}`)
  return { path, env: { LD_LIBRARY_PATH: LIBRARIES.map((place) => join(folder, place)).join(':') } }
}

async function unpack(packages: readonly string[], folder: string): Promise<void> {
  await mkdir(join(folder, '..'), { recursive: true })
  const work = await mkdtemp(`${folder}.new-`)
  try {
    await download(packages, work)
    for (const file of (await readdir(work)).filter((name) => name.endsWith('.deb'))) {
      await runCommand('dpkg-deb', ['--extract', join(work, file), work])
      await rm(join(work, file))
    }
    await rename(work, folder)
  } catch (cause) {
    await rm(work, { recursive: true, force: true })
    throw new Error(`${packages.join(', ')} cannot be had. Type: apt-get update && apt-get install ${packages.join(' ')}`, { cause })
  }
}

/** apt-get downloads into the directory it is in. */
async function download(packages: readonly string[], work: string): Promise<void> {
  const fetch = (): Promise<string> =>
    runCommand('sh', ['-c', 'cd "$1" && shift && exec apt-get -q -o APT::Sandbox::User=root download "$@"', 'sh', work, ...packages], { timeoutMs: FETCH_MS })
  try {
    await fetch()
  } catch {
    // A machine that has never updated its lists knows no packages.
    await runCommand('apt-get', ['-q', 'update'], { timeoutMs: FETCH_MS })
    await fetch()
  }
}
