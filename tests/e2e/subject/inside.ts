/** What is true inside a sandbox, asked of its own kernel rather than of the product's lists. */
import assert from 'node:assert/strict'
import { must } from '../bounds.ts'
import { sha256, text } from './bytes.ts'
import type { Command, Outcome, Sandboxed } from './sandboxed.ts'

export type InsideProcess = { readonly pid: number; readonly state: string; readonly command: string }

const SCAN = `import os
for pid in sorted(int(name) for name in os.listdir('/proc') if name.isdigit()):
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file: state = file.read().rsplit(b')', 1)[1].split()[0].decode()
        with open(f'/proc/{pid}/cmdline', 'rb') as file: command = file.read().replace(b'\\0', b' ').decode('utf-8', 'replace').strip()
    except OSError:
        continue
    print(pid, state, command.replace('\\n', ' ')[:200])
`

/** Every process of the sandbox but the one that asks, from /proc inside it. */
export async function processesInside(sandbox: Pick<Sandboxed, 'exec'>): Promise<readonly InsideProcess[]> {
  const { stdout, exitCode } = await must('reading /proc inside the sandbox', sandbox.exec({ argv: ['python3', '-c', SCAN], timeoutMs: 30_000 }))
  assert.equal(exitCode, 0, 'reading /proc inside the sandbox works')
  return text(stdout)
    .split('\n')
    .filter((line) => line !== '' && !line.includes('import os for pid'))
    .map((line) => {
      const [pid = '', state = '', ...command] = line.split(' ')
      return { pid: Number(pid), state, command: command.join(' ') }
    })
}

/** SHA-256 of a file, computed inside. */
export async function sha256Inside(sandbox: Pick<Sandboxed, 'exec'>, path: string): Promise<string | undefined> {
  const { stdout, exitCode } = await must('sha256sum inside the sandbox', sandbox.exec({ argv: ['sha256sum', '--', path], timeoutMs: 120_000 }))
  // A name with a backslash or newline makes sha256sum put a backslash before the sum.
  return exitCode === 0 ? text(stdout).replace(/^\\/, '').slice(0, 64) : undefined
}

/** A command that must work, and its standard output as text. */
export async function ask(sandbox: Pick<Sandboxed, 'exec'>, command: Command): Promise<string> {
  const outcome: Outcome = await must(`the command ${JSON.stringify(command.argv ?? command.shell)}`, sandbox.exec({ timeoutMs: 60_000, ...command }))
  assert.equal(outcome.exitCode, 0, `the command ${JSON.stringify(command.argv ?? command.shell)} exits 0: ${text(outcome.stderr)}`)
  return text(outcome.stdout)
}

export const assertSameBytes = (actual: Uint8Array, expected: Uint8Array, what: string): void => {
  assert.equal(actual.byteLength, expected.byteLength, `${what}: ${actual.byteLength} bytes instead of ${expected.byteLength}.`)
  assert.equal(sha256(actual), sha256(expected), `${what}: other bytes of the same length.`)
}
