/** Arguments as bytes. */

const NUL = 0

/** @param commandLine `/proc/PID/cmdline`: each argument followed by NUL */
export function lastArguments(commandLine: Uint8Array, count: number): Uint8Array[] {
  const found: Uint8Array[] = []
  for (let start = 0; start < commandLine.byteLength; ) {
    const end = commandLine.indexOf(NUL, start)
    const stop = end === -1 ? commandLine.byteLength : end
    found.push(commandLine.slice(start, stop))
    start = stop + 1
  }
  return count === 0 ? [] : found.slice(-count)
}

const REPLACEMENT = '\uFFFD'

/** The same arguments, as bytes where text could not hold them. @param raw the same arguments as bytes */
export function exactArguments(texts: readonly string[], raw: readonly Uint8Array[]): (string | Uint8Array)[] {
  return texts.map((text, index) => (text.includes(REPLACEMENT) ? (raw[index] ?? text) : text))
}

/** The command behind `--`, which is what this process's own arguments end with. */
export function exactCommand(command: readonly string[], last: (count: number) => readonly Uint8Array[]): (string | Uint8Array)[] {
  return command.some((argument) => argument.includes(REPLACEMENT)) ? exactArguments(command, last(command.length)) : [...command]
}
