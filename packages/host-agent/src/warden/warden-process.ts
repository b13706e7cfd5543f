/**
 * The warden's process: found, or started in a session of its own, and replaced when it dies or does not answer.
 *
 * A warden that is replaced has left the deadline in its file, so nothing is prolonged by it (restart.deadline). What of its state is known here is for
 * refusing early and for telling: what holds is what the warden does.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import { type Log, reasonOf } from '../log.ts'
import { identify, listProcesses, sendSignal } from '../processes/process-table.ts'
import type { Command, Moment, Warden, WayIn } from './warden.ts'
import { WardenConnection } from './warden-connection.ts'
import { leftMsOf, type WardenLine, type WardenState } from './warden-line.ts'

const ANSWER_MS = 1_000
const START_MS = 3_000
const LOOK_MS = 5
const RETRY_MS = 250
const END_MS = 2_000
/** The second one is for the warden that took the place of one that had died. */
const ATTEMPTS = 2

export type WardenPlace = {
  readonly binary: string
  /** Control group (version 2) that everything of sandboxes is below; undefined where the machine has no such groups. */
  readonly group: string | undefined
  /** Its lock, socket and deadline. */
  readonly run: string
  /** What it says of itself. */
  readonly log: string
}

export type WardenInput = {
  readonly place: WardenPlace
  /** What a renewal is good for, from its sending: the lease without its margin. */
  readonly renewalMs: number
  readonly clock: Clock
  readonly log: Log
}

/** Processes of wardens of this installation, as their arguments say. */
function wardensOf({ run }: Pick<WardenPlace, 'run'>): number[] {
  return listProcesses((argv) => argv.includes('keep') && argv.at(-1) === run).map(({ pid }) => pid)
}

export class WardenProcess implements Warden {
  readonly #input: WardenInput
  #connection: WardenConnection | undefined
  #state: (WardenState & { readonly untilMs: number }) | undefined
  #starting: Promise<void> | undefined
  #closed = false

  constructor(input: WardenInput) {
    this.#input = input
  }

  get alive(): boolean {
    return this.#connection !== undefined
  }

  get frozen(): boolean {
    return this.#state?.frozen ?? true
  }

  leftMs(): number {
    return this.#state === undefined ? 0 : this.#state.untilMs - this.#input.clock.nowMs()
  }

  through(command: Command, how: WayIn = 'run'): Command {
    const { binary, group } = this.#input.place
    if (group === undefined || !this.alive) throw new Error('no warden keeps the lease of this host; nothing is launched without one')
    if (this.leftMs() <= 0) throw new Error('the lease of this host has run out')
    return [binary, how, join(group, 'sandglass-gate'), ...command]
  }

  async moment(): Promise<Moment | undefined> {
    const line = await this.#ask('state')
    return line?.kind === 'state' ? line.now : undefined
  }

  async renewed(sent: Moment | undefined): Promise<void> {
    if (sent === undefined) return
    const line = await this.#ask(`sent ${sent} ${this.#input.renewalMs}`)
    if (line?.kind === 'refused') this.#input.log.error('warden.refused', { reason: line.why })
  }

  async watch(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#input
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    while (!signal.aborted) {
      try {
        await this.start()
        await Promise.race([this.#connection?.closed, stopped])
      } catch (error) {
        log.error('warden.missing', { reason: reasonOf(error) })
      }
      if (!signal.aborted) await clock.wait(RETRY_MS, signal).catch(() => undefined)
    }
  }

  /** Finds the one that lives, or starts one. @throws Error when none can be had */
  async start(): Promise<void> {
    if (this.#connection !== undefined || this.#closed) return
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    await this.#starting
  }

  close(): void {
    this.#closed = true
    this.#connection?.close()
  }

  async #start(): Promise<void> {
    if (await this.#connect()) return
    // One that holds the lock and answers nobody keeps nothing.
    await endProcesses(this.#input)
    const exited = this.#spawn()
    const { clock } = this.#input
    for (const deadline = clock.nowMs() + START_MS; !(await this.#connect()); ) {
      const how = exited()
      if (how !== undefined || clock.nowMs() > deadline) throw new Error(`the warden did not start: ${how ?? 'it does not answer'}`)
      await clock.wait(LOOK_MS)
    }
    this.#input.log.info('warden.started', { pid: this.#state?.pid, left_ms: Math.round(this.leftMs()) })
  }

  /** @returns how it ended, once it has */
  #spawn(): () => string | undefined {
    const { binary, group, run, log } = this.#input.place
    if (group === undefined) throw new Error('no control groups of version 2 are mounted here, so nothing can be frozen')
    let ended: string | undefined
    const output = openSync(log, 'a', 0o600)
    try {
      // In a session of its own, holding nothing of the agent's: what ends the agent does not reach it.
      const child = spawn(binary, ['keep', '--group', group, '--run', run], { detached: true, cwd: '/', env: {}, stdio: ['ignore', 'ignore', output] })
      child.once('error', (error) => {
        ended = error.message
      })
      child.once('exit', (code, signal) => {
        ended = `${code === null ? `ended by ${signal}` : `exit code ${code}`}, see ${log}`
      })
      child.unref()
    } finally {
      closeSync(output)
    }
    return () => ended
  }

  async #connect(): Promise<boolean> {
    let connection: WardenConnection | undefined
    try {
      connection = await WardenConnection.open(join(this.#input.place.run, 'socket'), (state) => this.#keep(state))
      if ((await connection.ask('state', ANSWER_MS)).kind !== 'state') throw new Error('it is no warden')
    } catch {
      connection?.close()
      return false
    }
    const opened = connection
    this.#connection = opened
    void opened.closed.then(() => {
      if (this.#connection === opened) this.#connection = undefined
    })
    return true
  }

  async #ask(line: string): Promise<WardenLine | undefined> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      try {
        await this.start()
        return await this.#connection?.ask(line, ANSWER_MS)
      } catch (error) {
        this.#input.log.error('warden.silent', { reason: reasonOf(error) })
      }
    }
    return undefined
  }

  #keep(state: WardenState): void {
    const before = this.#state?.frozen
    this.#state = { ...state, untilMs: this.#input.clock.nowMs() + leftMsOf(state) }
    if (before !== undefined && before !== state.frozen) this.#input.log.warn(state.frozen ? 'host.frozen' : 'host.thawed')
  }
}

async function endProcesses({ place, clock }: Pick<WardenInput, 'place' | 'clock'>): Promise<void> {
  const left = (): number[] => wardensOf(place).filter((pid) => identify(pid) !== undefined)
  for (const deadline = clock.nowMs() + END_MS; left().length > 0; ) {
    for (const pid of left()) sendSignal(pid, 'SIGKILL')
    if (clock.nowMs() > deadline) throw new Error('a warden does not die')
    await clock.wait(LOOK_MS)
  }
}

/** When nothing of the installation runs any more: the warden ends by itself, and one that does not is ended. */
export async function endWarden(place: WardenPlace, clock: Clock): Promise<void> {
  const connection = await WardenConnection.open(join(place.run, 'socket'), () => undefined).catch(() => undefined)
  await connection?.ask('end', ANSWER_MS).catch(() => undefined)
  const deadline = clock.nowMs() + ANSWER_MS
  while (connection !== undefined && wardensOf(place).length > 0 && clock.nowMs() < deadline) await clock.wait(LOOK_MS)
  connection?.close()
  await endProcesses({ place, clock })
}
