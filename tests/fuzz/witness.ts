/** What must be true of an installation after a fuzzer was at it: the same processes, no more of anything, no internal error, everything works. */
import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Sandbox } from '@sandglass/sdk'
import { must, within } from '../e2e/bounds.ts'
import type { Installation } from '../e2e/installation.ts'
import { type Allowance, type Levels, levels, settledGrowth } from '../failure/flat.ts'
import { livingRole, ROLES } from '../failure/roles.ts'

const MIB = 1024 * 1024
/** Heaps find their size during a fuzz; what leaks in tens of seconds of it is far more. */
const ALLOWED: Allowance = { pssBytes: 96 * MIB, descriptors: 24, threads: 4 }
const LOGS = ['control-plane', 'gateway', 'host-agent'] as const
const LIMIT_MS = 20_000

function lives(home: string): Record<string, unknown> {
  return Object.fromEntries([...ROLES, 'supervisor' as const].map((role) => [role, livingRole(home, role)]))
}

const logOf = (home: string, name: string): string => join(home, 'log', `${name}.log`)

/** Lines of a log behind a position that say `error`. */
function errorsBehind(path: string, position: number): string[] {
  const file = openSync(path, 'r')
  try {
    const size = Math.max(0, fstatSync(file).size - position)
    const bytes = Buffer.alloc(size)
    readSync(file, bytes, 0, size, position)
    return bytes
      .toString('utf8')
      .split('\n')
      .filter((line) => line.includes('"level":"error"'))
  } finally {
    closeSync(file)
  }
}

export class Witness {
  readonly #installation: Installation
  readonly #lives: Record<string, unknown>
  readonly #levels: Levels
  readonly #logs: Readonly<Record<string, number>>

  constructor(installation: Installation) {
    this.#installation = installation
    this.#lives = lives(installation.home)
    this.#levels = levels(installation.home)
    this.#logs = Object.fromEntries(LOGS.map((name) => [name, statSync(logOf(installation.home, name)).size]))
  }

  /** @param sandboxes that must still run commands @param toldErrors log lines that are meant to be written */
  async unharmed(sandboxes: readonly Sandbox[], toldErrors: RegExp = /(?!)/): Promise<void> {
    const { home } = this.#installation
    assert.deepEqual(lives(home), this.#lives, 'every role is the process that it was')
    for (const sandbox of sandboxes) {
      const result = await must(`a command of ${sandbox.id}`, within(LIMIT_MS, `a command of ${sandbox.id}`, sandbox.exec(['echo', 'well'])))
      assert.equal(result.stdout, 'well\n', `${sandbox.id} works`)
    }
    const errors = LOGS.flatMap((name) => errorsBehind(logOf(home, name), this.#logs[name] ?? 0)).filter((line) => !toldErrors.test(line))
    assert.deepEqual(errors.slice(0, 5), [], 'no role had an error of its own')
    assert.deepEqual(await settledGrowth(this.#levels, () => levels(home), ALLOWED), [], 'nothing grew')
  }
}
