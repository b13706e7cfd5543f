/** Small roles for tests: a shell script each, ready when it has made its file, and a home to run them in. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { paths } from '../src/installation.ts'
import type { RoleSpec, RoleTiming } from '../src/role-spec.ts'
import { Supervision } from '../src/supervision.ts'

export const QUICK: RoleTiming = {
  backoffMs: 10,
  backoffMaxMs: 80,
  stableMs: 5_000,
  readyPollMs: 10,
  watchMs: 20,
  stopMs: 30_000,
  startCrashes: 3,
  startMs: 60_000,
}

export class ScriptedHome implements AsyncDisposable {
  readonly home = mkdtempSync(join(tmpdir(), 'sandglass-supervisor-'))
  readonly events: string[] = []
  #supervision: Supervision | undefined

  file(name: string): string {
    return join(this.home, name)
  }

  has(name: string): boolean {
    return existsSync(this.file(name))
  }

  read(name: string): string {
    return existsSync(this.file(name)) ? readFileSync(this.file(name), 'utf8') : ''
  }

  /** @param script sh; `$READY` is the file that it makes when it is ready */
  role(name: string, script: string, stopSignal: NodeJS.Signals = 'SIGTERM'): RoleSpec {
    const ready = this.file(`${name}.ready`)
    return {
      name,
      stopSignal,
      launch: () => {
        rmSync(ready, { force: true })
        const env = { PATH: '/usr/bin:/bin', READY: ready, HERE: this.home, SANDGLASS_HOME: this.home }
        return Promise.resolve({ command: 'sh', args: ['-c', script], env, url: `http://${name}`, isReady: () => Promise.resolve(existsSync(ready)) })
      },
    }
  }

  supervise(groups: RoleSpec[][], timing: Partial<RoleTiming> = {}): Supervision {
    this.#supervision = new Supervision(groups, {
      home: this.home,
      timing: { ...QUICK, ...timing },
      now: () => new Date(),
      changed: () => undefined,
      event: (name, fields) => this.events.push(`${name} ${String(fields['role'])} ${String(fields['state'] ?? '')}`.trim()),
    })
    return this.#supervision
  }

  log(role: string): string {
    return readFileSync(paths.log(this.home, role), 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#supervision?.stop().catch(() => undefined)
    rmSync(this.home, { recursive: true, force: true })
  }
}
