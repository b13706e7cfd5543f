/** Debian's Chromium, installed when it is missing. It is driven by nothing but the page that it is given: the page tells the test how it went. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installDebian } from '../../debian.ts'

const PROGRAM = '/usr/bin/chromium'

/** @throws Error when there is none and none can be installed: a browser is required here */
export async function requireChromium(): Promise<void> {
  if (existsSync(PROGRAM)) return
  await installDebian(['chromium'])
  if (!existsSync(PROGRAM)) throw new Error('there is no /usr/bin/chromium; type: apt-get install chromium')
}

export class Browser implements AsyncDisposable {
  readonly #profile = mkdtempSync(join(tmpdir(), 'sandglass-chromium-'))
  readonly #child
  readonly #gone: Promise<void>

  constructor(url: string) {
    const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', `--user-data-dir=${this.#profile}`, url]
    // A group of its own: the browser is many processes.
    this.#child = spawn(PROGRAM, args, { stdio: 'ignore', detached: true })
    this.#gone = new Promise((resolve) => this.#child.once('close', () => resolve()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL')
    await this.#gone
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }
}
