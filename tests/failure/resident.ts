/**
 * A sandbox that lives through every crash: a process that counts, a shell that remembers, files that were acknowledged.
 *
 * The counter prints its numbers, so the exact bytes of its output tell whether it went on, started again or lost some.
 */
import { NoAnswer, textOf, type Where } from './api.ts'
import type { CarefulClient } from './careful-client.ts'
import type { Random } from './seed.ts'
import { TerminalSession } from './terminal-session.ts'

const COUNTER = 'import time\ni = 0\nwhile True:\n    i += 1\n    print(i, flush=True)\n    time.sleep(0.1)\n'
const FILE_SLOTS = 6
const FILE_BYTES = 48 * 1024
const TERMINAL_LIMIT_MS = 30_000

/** The numbers 1, 2, 3 … as they stand in the output, from a byte offset on: what is wrong with `text`, or undefined. */
export function counterFault(since: number, next: number, text: string): { fault: string | undefined; offset: number; next: number } {
  let expected = next
  let offset = since
  const lines = text.split('\n')
  // The last piece has no newline yet and is read again.
  for (const line of lines.slice(0, -1)) {
    if (line !== String(expected)) return { fault: `the counter says ${JSON.stringify(line)} where ${expected} is due`, offset, next: expected }
    expected += 1
    offset += line.length + 1
  }
  return { fault: undefined, offset, next: expected }
}

/** What was true of a resident before any crash. */
type Origin = { readonly mark: string; readonly counterPid: number; readonly shellPid: string }

export class Resident {
  readonly where: Where
  readonly #client: CarefulClient
  readonly #random: Random
  readonly #origin: Origin
  #counter = { offset: 0, next: 1 }
  #terminal: TerminalSession
  #asked = 0
  #writes = 0

  private constructor(client: CarefulClient, where: Where, random: Random, origin: Origin, terminal: TerminalSession) {
    this.#client = client
    this.where = where
    this.#random = random
    this.#origin = origin
    this.#terminal = terminal
  }

  /** Before any crash: nothing is repeated here. */
  static async settleIn(client: CarefulClient, where: Where, random: Random): Promise<Resident> {
    const counter = await client.api.startInBackground(where, { argv: ['python3', '-u', '-c', COUNTER], process_key: 'counter' })
    const terminal = await TerminalSession.open(client.api, where, 'key=shell&cols=120&rows=40&shell=/bin/bash')
    const mark = `mark-${random.integer(1_000_000)}`
    terminal.type(`MARK=${mark}`)
    const shellPid = await terminal.ask('$$', 'first', TERMINAL_LIMIT_MS)
    return new Resident(client, where, random, { mark, counterPid: counter.pid, shellPid }, terminal)
  }

  /** One write of one file, repeated until it is acknowledged. */
  work(): Promise<void> {
    const path = `/root/kept-${this.#writes % FILE_SLOTS}`
    this.#writes += 1
    return this.#client.write(this.where, path, this.#random.bytes(1 + this.#random.integer(FILE_BYTES)))
  }

  /** What became of the counter: same process, further on, no number lost. */
  async counterFaults(): Promise<string[]> {
    const faults: string[] = []
    const { id } = this.where
    const { pid, state, exit_code: code, signal } = await this.#persist('reading the counter', () => this.#client.api.getProcess(this.where, 'key:counter'))
    if (pid !== this.#origin.counterPid) faults.push(`the counter of ${id} has pid ${pid}, it had ${this.#origin.counterPid}`)
    if (state !== 'running') return [...faults, `the counter of ${id} is ${state} (exit code ${code}, signal ${signal})`]
    const before = this.#counter
    const seen = await this.#persist('the counter going on', async () => {
      const text = textOf(await this.#client.api.readOutput(this.where, 'key:counter', before.offset))
      const now = counterFault(before.offset, before.next, text)
      if (now.fault === undefined && now.next === before.next) throw new NoAnswer(`it stands still at ${before.next - 1}`)
      return now
    })
    this.#counter = { offset: seen.offset, next: seen.next }
    return seen.fault === undefined ? faults : [...faults, `${id}: ${seen.fault}`]
  }

  /** Is the connection that was open before the crash still the one that the shell answers on? */
  async openTerminalFaults(): Promise<string[]> {
    try {
      return this.#shellFaults(await this.#ask())
    } catch (error) {
      return [`the open terminal of ${this.where.id} did not live on: ${error instanceof Error ? error.message : String(error)}`]
    }
  }

  /** Comes back to the shell where the connection broke, and asks it what it remembers. */
  async shellFaults(): Promise<string[]> {
    const answer = await this.#persist('coming back to the shell', async () => {
      if (this.#terminal.ended !== undefined) await this.#comeBack()
      try {
        return await this.#ask()
      } catch (cause) {
        // A connection over a dead hop may look alive; a fresh one tells.
        await this.#comeBack()
        throw cause instanceof NoAnswer ? cause : new NoAnswer('the shell did not answer', { cause })
      }
    })
    return this.#shellFaults(answer)
  }

  #shellFaults(answer: string): string[] {
    const expected = `${this.#origin.mark}:${this.#origin.shellPid}`
    return answer === expected ? [] : [`the shell of ${this.where.id} remembers ${JSON.stringify(answer)} instead of ${JSON.stringify(expected)}`]
  }

  #ask(): Promise<string> {
    this.#asked += 1
    return this.#terminal.ask('$MARK:$$', `q${this.#asked}`, TERMINAL_LIMIT_MS)
  }

  async #comeBack(): Promise<void> {
    const { processId, offset } = this.#terminal
    this.#terminal[Symbol.dispose]()
    this.#terminal = await TerminalSession.open(this.#client.api, this.where, `id=${processId}&since=${offset}`)
    if (this.#terminal.processId !== processId) this.#client.ledger.fault(`the terminal ${processId} came back as ${this.#terminal.processId}`)
  }

  #persist<T>(what: string, call: () => Promise<T>): Promise<T> {
    return this.#client.persist(`${what} of ${this.where.id}`, call)
  }

  leave(): void {
    this.#terminal[Symbol.dispose]()
  }
}
