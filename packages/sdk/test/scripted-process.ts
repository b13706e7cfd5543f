/**
 * A process behind a scripted gateway: it has output of a known content, honours credit, can be attached at any offset, keeps what it reads,
 * and breaks its connection where the test says. A client that breaks the rules of credit makes the test fail.
 */
import assert from 'node:assert/strict'
import type { ClientFrame, ClientStatus } from '@sandglass/contract/gateway-frames'
import type { Process } from '@sandglass/contract/process'
import { wireProcess } from './scripted-sandboxes.ts'
import type { Peer, ScriptedServer } from './scripted-server.ts'

const CHUNK_BYTES = 64 * 1024

type Connection = { peer: Peer; credit: number; stdinCredit: number; again: number; sinceCut: number; dead: boolean }

export type ProcessScript = {
  readonly stdout?: Uint8Array
  readonly stderr?: Uint8Array
  /** Bytes of output after which the first, second, … connection breaks. */
  readonly cutAfter?: readonly number[]
  /** Bytes of input after which the first, second, … connection breaks; as many as it says are lost on the way. */
  readonly cutInputAfter?: readonly { readonly bytes: number; readonly lost: number }[]
  readonly stdinCredit?: number
  readonly exit?: Partial<Process>
  /** Ends only when input ended. */
  readonly waitsForInput?: boolean
  /** Oldest byte of standard output that is kept for those who come again. */
  readonly keptFrom?: number
}

export class ScriptedProcess {
  readonly received: Buffer[] = []
  receivedBytes = 0
  inputEnded = false
  starts = 0
  attaches = 0
  readonly keys = new Set<string>()
  readonly writers = new Set<string>()
  mostBuffered = 0
  readonly #script: ProcessScript
  #connection: Connection | undefined
  #sentStdout = 0
  #sentStderr = 0

  constructor(server: ScriptedServer, script: ProcessScript) {
    this.#script = script
    server.onSocket = (peer, frame) => this.#frame(peer, frame)
  }

  get #stdout(): Uint8Array {
    return this.#script.stdout ?? new Uint8Array(0)
  }

  get #stderr(): Uint8Array {
    return this.#script.stderr ?? new Uint8Array(0)
  }

  #record(change: Partial<Process> = {}): Process {
    return wireProcess({
      stdout: { start: 0, end: this.#stdout.byteLength },
      stderr: { start: 0, end: this.#stderr.byteLength },
      stdin: { accepted: this.receivedBytes, open: !this.inputEnded },
      ...change,
    })
  }

  #frame(peer: Peer, frame: ClientFrame): void {
    if (frame.channel === 'status') this.#open(peer, frame.status)
    const connection = this.#connection
    if (connection === undefined || connection.peer !== peer || connection.dead) return
    if (frame.channel === 'credit') {
      connection.credit += frame.bytes
      this.#pump(connection)
    } else if (frame.channel === 'stdin') this.#input(connection, frame.bytes)
    else if (frame.channel === 'halfClose') {
      this.inputEnded = true
      this.#pump(connection)
    }
  }

  #open(peer: Peer, status: ClientStatus): void {
    const again = status.type === 'attach' && status.stdin_offset !== undefined ? this.receivedBytes - status.stdin_offset : 0
    const stdinCredit = this.#script.stdinCredit ?? 256 * 1024
    const connection: Connection = { peer, credit: status.credit_bytes, stdinCredit, again, sinceCut: 0, dead: false }
    assert.ok(again >= 0, 'the client would leave bytes out')
    if (status.writer !== undefined) this.writers.add(status.writer)
    if (status.type === 'start') {
      this.starts += 1
      if (status.process.key !== undefined) this.keys.add(status.process.key)
      this.#sentStdout = 0
      this.#sentStderr = 0
    } else {
      this.attaches += 1
      this.#sentStdout = Math.max(status.since_stdout ?? 0, this.#script.keptFrom ?? 0)
      this.#sentStderr = status.since_stderr ?? 0
    }
    this.#connection = connection
    peer.status({
      type: 'started',
      process: this.#record(),
      stdout_offset: this.#sentStdout,
      stderr_offset: this.#sentStderr,
      stdin_credit_bytes: connection.stdinCredit,
    })
    this.#pump(connection)
  }

  #input(connection: Connection, bytes: Uint8Array): void {
    connection.stdinCredit -= bytes.byteLength
    assert.ok(connection.stdinCredit >= 0, 'the client sent more input than it had credit for')
    const cut = this.#script.cutInputAfter?.[this.starts + this.attaches - 1]
    connection.sinceCut += bytes.byteLength
    if (cut !== undefined && connection.sinceCut >= cut.bytes) {
      this.#take(connection, bytes.subarray(0, Math.max(0, bytes.byteLength - cut.lost)))
      this.#cut(connection)
      return
    }
    this.#take(connection, bytes)
    connection.stdinCredit += bytes.byteLength
    connection.peer.credit(bytes.byteLength)
  }

  #take(connection: Connection, bytes: Uint8Array): void {
    const fresh = bytes.subarray(connection.again)
    connection.again -= bytes.byteLength - fresh.byteLength
    this.received.push(Buffer.from(fresh))
    this.receivedBytes += fresh.byteLength
  }

  #cut(connection: Connection): void {
    connection.dead = true
    connection.peer.cut()
  }

  #pump(connection: Connection): void {
    const cutAfter = this.#script.cutAfter?.[this.starts + this.attaches - 1]
    let sent = connection.sinceCut
    while (connection.credit > 0) {
      const stream = this.#sentStdout < this.#stdout.byteLength ? 'stdout' : 'stderr'
      const from = stream === 'stdout' ? this.#sentStdout : this.#sentStderr
      const all = stream === 'stdout' ? this.#stdout : this.#stderr
      const part = all.subarray(from, from + Math.min(CHUNK_BYTES, connection.credit, cutAfter === undefined ? CHUNK_BYTES : Math.max(1, cutAfter - sent)))
      if (part.byteLength === 0) break
      connection.peer.output(stream, part)
      connection.credit -= part.byteLength
      sent += part.byteLength
      connection.sinceCut = sent
      if (stream === 'stdout') this.#sentStdout += part.byteLength
      else this.#sentStderr += part.byteLength
      if (cutAfter !== undefined && sent >= cutAfter) {
        this.#cut(connection)
        return
      }
    }
    this.#maybeExit(connection)
  }

  #maybeExit(connection: Connection): void {
    if (this.#script.waitsForInput === true && !this.inputEnded) return
    if (this.#sentStdout < this.#stdout.byteLength || this.#sentStderr < this.#stderr.byteLength) return
    connection.peer.status({ type: 'exit', process: this.#record({ state: 'exited', exit_code: 0, duration_ms: 12, ended_at_ms: 12, ...this.#script.exit }) })
  }
}
