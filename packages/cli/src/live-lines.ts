/** A live source printed one line an item, until so many were seen or a signal comes. */
import { Interrupt, Interrupted } from './interrupt.ts'
import type { Io } from './io.ts'

export type LiveLines<T> = {
  readonly open: (signal: AbortSignal) => AsyncIterable<T>
  readonly lineOf: (item: T) => string
  /** Ends after so many; absent: never. */
  readonly count: number | undefined
}

/** @returns the exit code */
export async function printLive<T>(io: Io, { open, lineOf, count = Number.POSITIVE_INFINITY }: LiveLines<T>): Promise<number> {
  using interrupt = new Interrupt(io)
  try {
    let seen = 0
    for await (const item of open(interrupt.signal)) {
      await io.stdout.write(`${lineOf(item)}\n`)
      seen += 1
      if (seen >= count) break
    }
    return 0
  } catch (error) {
    // Its only end is somebody's wish.
    if (error instanceof Interrupted) return error.signal === 'INT' ? 0 : error.exitCode
    throw error
  }
}
