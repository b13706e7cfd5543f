/** A role's log: appended to, and moved aside when it reaches its size, so that a chatty role cannot fill the disk. */
import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

export type LogLimits = { readonly bytes: number; readonly kept: number }

export const LOG_LIMITS: LogLimits = { bytes: 8 * 1024 * 1024, kept: 3 }

export class LogFile {
  readonly path: string
  readonly #limits: LogLimits
  #file: number
  #bytes: number

  constructor(path: string, limits: LogLimits = LOG_LIMITS) {
    this.path = path
    this.#limits = limits
    this.#file = openSync(path, 'a', 0o640)
    this.#bytes = fstatSync(this.#file).size
  }

  /** Written at once: what a role said last before it died is what one looks for. */
  write(chunk: Uint8Array | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    if (this.#bytes > 0 && this.#bytes + bytes.byteLength > this.#limits.bytes) this.#rotate()
    try {
      writeSync(this.#file, bytes)
      this.#bytes += bytes.byteLength
    } catch {
      // A full disk must not end the roles that might free it.
    }
  }

  #rotate(): void {
    closeSync(this.#file)
    for (let index = this.#limits.kept; index >= 1; index -= 1) {
      const from = index === 1 ? this.path : `${this.path}.${index - 1}`
      try {
        renameSync(from, `${this.path}.${index}`)
      } catch {
        // Not that many yet.
      }
    }
    this.#file = openSync(this.path, 'a', 0o640)
    this.#bytes = 0
  }

  close(): void {
    closeSync(this.#file)
  }
}
