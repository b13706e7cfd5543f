/** Roles in groups: a group starts when the one before is ready; they stop in the opposite order, one by one. */
import { mkdirSync } from 'node:fs'
import { waitUntil } from './bounded-wait.ts'
import { paths } from './installation.ts'
import { LogFile } from './log-file.ts'
import { readPidFile, removePidFile, writePidFile } from './pid-file.ts'
import { isAlive, signalProcess } from './process-identity.ts'
import { RoleProcess, type RoleReport } from './role-process.ts'
import type { RoleSpec, RoleTiming } from './role-spec.ts'

const ORPHAN_POLL_MS = 20

export type SupervisionWorld = {
  readonly home: string
  readonly timing: RoleTiming
  readonly now: () => Date
  readonly changed: (reports: readonly RoleReport[]) => void
  /** One event, for the supervisor's own log. */
  readonly event: (name: string, fields: Readonly<Record<string, string | number | undefined>>) => void
}

export class Supervision {
  readonly #groups: readonly (readonly RoleProcess[])[]
  readonly #logs: LogFile[] = []
  readonly #world: SupervisionWorld

  constructor(groups: readonly (readonly RoleSpec[])[], world: SupervisionWorld) {
    this.#world = world
    mkdirSync(paths.run(world.home), { recursive: true })
    mkdirSync(paths.logs(world.home), { recursive: true })
    this.#groups = groups.map((group) => group.map((spec) => this.#role(spec)))
  }

  get reports(): RoleReport[] {
    return this.#groups.flat().map((role) => role.report)
  }

  /** Resolves when every role was ready once. @throws CodedError `role_not_ready`; what was started keeps running until stop */
  async start(): Promise<void> {
    for (const group of this.#groups) await Promise.all(group.map((role) => role.start()))
  }

  async stop(): Promise<void> {
    for (const group of this.#groups.toReversed()) for (const role of group.toReversed()) await role.stop()
    for (const log of this.#logs) log.close()
  }

  /** A supervisor that was killed may have left roles that have not noticed yet: they end before new ones start. */
  async endOrphans(): Promise<void> {
    for (const role of this.#groups.flat().toReversed()) await endOrphan(this.#world, role.spec)
  }

  #role(spec: RoleSpec): RoleProcess {
    const { home, event } = this.#world
    const log = new LogFile(paths.log(home, spec.name))
    this.#logs.push(log)
    return new RoleProcess(spec, {
      timing: this.#world.timing,
      now: this.#world.now,
      log,
      started: (pid) => {
        writePidFile(home, spec.name, pid)
        event('role_started', { role: spec.name, pid })
      },
      ended: () => removePidFile(home, spec.name),
      changed: (report) => {
        event('role_changed', { role: report.name, state: report.state, pid: report.pid, restarts: report.restarts, last_exit: report.lastExit })
        this.#world.changed(this.reports)
      },
    })
  }
}

async function endOrphan(world: SupervisionWorld, spec: RoleSpec): Promise<void> {
  const orphan = readPidFile(world.home, spec.name)
  if (orphan === undefined) return
  world.event('orphan_found', { role: spec.name, pid: orphan.pid })
  signalProcess(orphan, spec.stopSignal)
  const gone = () => !isAlive(orphan)
  if (await waitUntil(gone, { timeoutMs: world.timing.stopMs, everyMs: ORPHAN_POLL_MS })) return
  signalProcess(orphan, 'SIGKILL')
  await waitUntil(gone, { timeoutMs: world.timing.stopMs, everyMs: ORPHAN_POLL_MS })
}
