/** Packages of Debian that only tests need, installed where they are missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const UPDATE_TIMEOUT_MS = 300_000
const INSTALL_TIMEOUT_MS = 600_000

/** A machine may have no lists of packages, or stale ones: they are brought up to date first. @throws Error saying what to type */
export async function installDebian(packages: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3']
  try {
    await run('apt-get', [...wait, 'update'], { timeout: UPDATE_TIMEOUT_MS, env })
    await run('apt-get', [...wait, 'install', '--yes', '--no-install-recommends', ...packages], { timeout: INSTALL_TIMEOUT_MS, env })
  } catch (cause) {
    throw new Error(`${packages.join(' ')} cannot be installed. Type: apt-get update && apt-get install ${packages.join(' ')}`, { cause })
  }
}
