/** Runs commands: output, exit codes, a shell, input, and what goes wrong. Prints `42`, and what each step shows. */
import { Sandbox, SandglassError } from '@sandglass/sdk'

await using sandbox = await Sandbox.create({ template: 'base', resources: { vcpu: 0.5, memoryMb: 512 }, ttlSeconds: 600 })

// Arguments, never a shell: nothing has to be quoted.
const { stdout, exitCode } = await sandbox.exec(['python3', '-c', 'print(6*7)'])
process.stdout.write(`${stdout.trim()} (exit code ${exitCode})\n`)

// A shell when you say so.
const lines = await sandbox.exec.shell('ls /usr/bin | wc -l')
process.stdout.write(`${lines.stdout.trim()} programs\n`)

// An exit code is a result; with `check` it is an error.
const failed = await sandbox.exec(['sh', '-c', 'echo no >&2; exit 3'])
process.stdout.write(`exit code ${failed.exitCode}, said ${failed.stderr.trim()}\n`)

const sum = await sandbox.exec(['sha256sum'], { stdin: 'sandglass\n', check: true })
process.stdout.write(`sha256 ${sum.stdout.slice(0, 16)}…\n`)

// Timeouts and refusals are errors with a code.
try {
  await sandbox.exec(['sleep', '100'], { timeoutMs: 1_000 })
} catch (error) {
  if (!(error instanceof SandglassError)) throw error
  process.stdout.write(`${error.code}, ${error.retryable ? 'retryable' : 'not retryable'}\n`)
}
