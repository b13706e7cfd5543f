/**
 * Who may type into which terminal, of the sessions of this gateway. Any number may, until one takes it over: then the others end. Who only watches is not
 * listed here, and stays.
 *
 * A writer that was ever among others is `shared`: the count of bytes that the terminal has taken is then not its own count.
 */
import { CodedError } from '@sandglass/contract'

export type Writer = { readonly end: (reason: CodedError) => void; isShared: boolean }

export class Writers {
  readonly #ofProcess = new Map<string, Set<Writer>>()

  /**
   * @param process what names it among all sandboxes
   * @returns to be called when the writer has gone
   */
  add(process: string, writer: Writer, takesOver: boolean): () => void {
    const writers = this.#ofProcess.get(process) ?? new Set()
    const others = [...writers]
    writers.add(writer)
    this.#ofProcess.set(process, writers)
    if (others.length > 0) for (const one of writers) one.isShared = true
    if (takesOver) for (const other of others) other.end(new CodedError('terminal_taken_over'))
    return () => {
      writers.delete(writer)
      if (writers.size === 0 && this.#ofProcess.get(process) === writers) this.#ofProcess.delete(process)
    }
  }
}
