/** One connection to a warden: a line, an answer. Lines that come unasked are told apart by their first word. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseWardenLine, type WardenLine, type WardenState } from './warden-line.ts'
import { type LineSplitter, lineSplitter } from './warden-lines.ts'

type Waiting = { readonly resolve: (line: WardenLine) => void; readonly reject: (error: Error) => void }

export class WardenConnection {
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #waiting: Waiting[] = []
  readonly #told: (state: WardenState) => void

  private constructor(socket: Socket, told: (state: WardenState) => void) {
    this.#socket = socket
    this.#told = told
    const lines: LineSplitter = lineSplitter()
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      const whole = lines.push(chunk)
      if (whole === undefined) socket.destroy()
      else for (const line of whole) this.#take(line)
    })
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        for (const { reject } of this.#waiting.splice(0)) reject(new Error('the warden has gone'))
        resolve()
      })
    })
  }

  /** @param told of every state that comes, asked for or not @throws Error when nobody listens there */
  static async open(path: string, told: (state: WardenState) => void): Promise<WardenConnection> {
    const socket = connect(path)
    await once(socket, 'connect')
    // What is waited for keeps this process alive; an idle connection does not.
    socket.unref()
    return new WardenConnection(socket, told)
  }

  /** @throws Error when there is no answer within the time: then the connection is closed */
  ask(line: string, timeoutMs: number): Promise<WardenLine> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`the warden did not answer within ${timeoutMs} ms`))
        this.close()
      }, timeoutMs)
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T): void => {
          clearTimeout(timer)
          settle(value)
        }
      }
      this.#waiting.push({ resolve: settled(resolve), reject: settled(reject) })
      if (this.#socket.destroyed) return this.#waiting.pop()?.reject(new Error('the warden has gone'))
      this.#socket.write(`${line}\n`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): void {
    const line = parseWardenLine(text)
    if (line === undefined) {
      this.close()
      return
    }
    if (line.kind === 'state' || line.kind === 'changed') this.#told(line)
    if (line.kind !== 'changed') this.#waiting.shift()?.resolve(line)
  }
}
