/** What happened: who, what, when. Its digest tells whether two runs were the same. */
import { createHash } from 'node:crypto'

export class History {
  readonly #lines: string[] = []

  note(atMs: number, who: string, what: string): void {
    this.#lines.push(`${(atMs / 1_000).toFixed(3).padStart(8)}  ${who.padEnd(8)} ${what}`)
  }

  get length(): number {
    return this.#lines.length
  }

  last(count: number): readonly string[] {
    return this.#lines.slice(-count)
  }

  digest(): string {
    return createHash('sha256').update(this.#lines.join('\n')).digest('hex')
  }
}
