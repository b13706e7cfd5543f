/** Makes a role die at a named point: arms its next start, kills it, and counts the processes that come and go. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './persist.ts'
import { killRole, livingRole, type Role } from './roles.ts'

const SAMPLE_MS = 10
const TAKEN_LIMIT_MS = 60_000

/** Every process that a role has been, as far as its pid file told. */
export class RoleWatch implements Disposable {
  readonly #seen = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor(home: string, role: Role) {
    const look = (): void => {
      const living = livingRole(home, role)
      if (living !== undefined) this.#seen.add(`${living.pid} ${living.startTime}`)
    }
    look()
    this.#timer = setInterval(look, SAMPLE_MS)
  }

  get lives(): number {
    return this.#seen.size
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

/** Kills the role; the one that the supervisor starts next dies at the point. */
export async function restartArmed(home: string, role: Role, point: string): Promise<void> {
  const file = join(home, 'run', `crash-at.${role}`)
  writeFileSync(file, point, { mode: 0o600 })
  killRole(home, role)
  await until(TAKEN_LIMIT_MS, `the supervisor starting an armed ${role}`, () => (existsSync(file) ? undefined : true))
}
