/** EX3: a heredoc, a quote or an exit that hangs or ends a shared session. Each command is one of its own. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase, type Size } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text } from '../subject/bytes.ts'
import { ask } from '../subject/inside.ts'
import type { Outcome, Sandboxed } from '../subject/sandboxed.ts'

type Line = { readonly shell: string; readonly exit: readonly (number | string)[]; readonly stdout?: string; readonly stderr?: RegExp }

const LINES: readonly Line[] = [
  { shell: "cat > /tmp/heredoc <<'END'\nfirst $HOME `x` \"q\"\n\n  last '\nEND", exit: [0], stdout: '' },
  { shell: 'cat <<END\nbody\nEND\necho after', exit: [0], stdout: 'body\nafter\n' },
  { shell: 'cat <<END\nnever ended', exit: [0], stdout: 'never ended\n', stderr: /here-document/ },
  { shell: "echo 'abc", exit: [1, 2], stdout: '', stderr: /unexpected EOF/ },
  { shell: 'echo "abc $(echo', exit: [1, 2], stdout: '', stderr: /unexpected EOF/ },
  { shell: 'exit 42', exit: [42], stdout: '' },
  { shell: 'exit 255', exit: [255], stdout: '' },
  { shell: 'exec 1>&-; echo lost', exit: [1], stdout: '', stderr: /Bad file descriptor/ },
  { shell: 'exec 0<&- 1>&- 2>&-; exit 3', exit: [3], stdout: '' },
  { shell: 'set -e; false; echo never', exit: [1], stdout: '' },
  { shell: 'cd /nowhere-at-all', exit: [1], stderr: /No such file/ },
  { shell: 'kill -KILL $$', exit: ['KILL'], stdout: '' },
  { shell: 'exec true', exit: [0], stdout: '' },
  { shell: 'trap "echo bye" EXIT; exit 9', exit: [9], stdout: 'bye\n' },
  { shell: 'export CARRIED=1; cd /tmp; f() { :; }', exit: [0], stdout: '' },
]

const ended = (outcome: Outcome): number | string | null => outcome.signal ?? outcome.exitCode

async function runsAlone(sandbox: Sandboxed, line: Line, size: Size): Promise<void> {
  const what = JSON.stringify(line.shell)
  const outcome = await must(what, within(size === 'full' ? 30_000 : 15_000, `the end of ${what}`, sandbox.exec({ shell: line.shell })))
  assert.ok(line.exit.includes(ended(outcome) ?? ''), `${what} ended with ${ended(outcome)}, not with ${line.exit.join(' or ')}.`)
  if (line.stdout !== undefined) assert.equal(text(outcome.stdout), line.stdout, `standard output of ${what}`)
  if (line.stderr !== undefined) assert.match(text(outcome.stderr), line.stderr, `standard error of ${what}`)
  const next = await must('the next command', within(20_000, `the command after ${what}`, sandbox.exec({ shell: 'echo ok $(printenv CARRIED || echo none)' })))
  assert.equal(`${ended(next)} ${text(next.stdout)}`, '0 ok none\n', `the command after ${what} knows nothing of it`)
}

defineCase<Sandboxed>({
  id: 'EX3',
  title: 'each command is one of its own: heredocs, quotes, exits',
  subject: sandboxed,
  async run(sandbox, size) {
    for (const line of LINES) await runsAlone(sandbox, line, size)
    assert.equal(await ask(sandbox, { argv: ['cat', '/tmp/heredoc'] }), 'first $HOME `x` "q"\n\n  last \'\n', 'the heredoc is in the file, unexpanded')
  },
  defects: {
    'a heredoc hangs the session': {
      breaks: (real) => ({ ...real, exec: (command) => (command.shell?.includes('<<') === true ? new Promise(() => {}) : real.exec(command)) }),
      says: /the end of .*heredoc.* did not come within/,
    },
    'an exit ends the session for the next command': {
      breaks: (real) => {
        let gone: number | undefined
        return {
          ...real,
          async exec(command) {
            const outcome = await real.exec(command)
            if (gone !== undefined) return { ...outcome, exitCode: gone, stdout: new Uint8Array() }
            if (command.shell?.startsWith('exit') === true) gone = outcome.exitCode ?? 0
            return outcome
          },
        }
      },
      says: /the command after "exit 42" knows nothing of it/,
    },
    'exit codes are lost': {
      breaks: (real) => ({ ...real, exec: async (command) => ({ ...(await real.exec(command)), exitCode: 0 }) }),
      says: /ended with 0, not with 1 or 2/,
    },
    'variables are carried over': {
      breaks: (real) => ({
        ...real,
        exec: (command) => real.exec(command.shell?.startsWith('echo ok') === true ? { ...command, env: { CARRIED: '1' } } : command),
      }),
      says: /knows nothing of it/,
    },
  },
})
