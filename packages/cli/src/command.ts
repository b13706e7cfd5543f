/** A command: one file under `commands/`, loaded when it is called. */
import type { Io } from './io.ts'

export type Command = {
  /** After `sandglass`. */
  readonly usage: string
  /** What `--help` says below the usage: options, one a line, and what there is to know. */
  readonly help: string
  /** @returns the exit code. @throws UsageError, SandglassError */
  readonly run: (io: Io, argv: readonly string[]) => Promise<number>
}

export type CommandEntry = {
  readonly name: string
  readonly summary: string
  /** Not for people: left out of the overview. */
  readonly hidden?: boolean
  readonly load: () => Promise<{ readonly command: Command }>
}
