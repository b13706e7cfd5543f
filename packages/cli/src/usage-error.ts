/** The command line was not understood. Printed with a hint at `--help`; exit code 125. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
