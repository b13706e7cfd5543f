/** EX4: commands that read standard input hang, or see its end when more was wanted. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { patterned, text, utf8 } from '../subject/bytes.ts'
import { assertSameBytes } from '../subject/inside.ts'
import type { Running, Sandboxed } from '../subject/sandboxed.ts'

/** Gathers output as it comes, so that a test can wait for a part of it. */
function gather(chunks: AsyncIterable<Uint8Array>): { text(): string; done: Promise<void> } {
  let seen = ''
  const done = (async () => {
    for await (const chunk of chunks) seen += text(chunk)
  })()
  done.catch(() => undefined)
  return { text: () => seen, done }
}

async function waitsForMore(sandbox: Sandboxed, limitMs: number): Promise<void> {
  const cat = await must('starting cat', sandbox.spawn({ argv: ['cat'] }))
  const output = gather(cat.stdout)
  await must('writing the first line', cat.write(utf8('one\n')))
  await until(limitMs, 'the first line came back', () => output.text() === 'one\n')
  const listed = (await sandbox.processes()).find((process) => process.id === cat.id)
  assert.equal(listed?.state, 'running', 'cat waits for more input.')
  await must('writing the second line', cat.write(utf8('two')))
  await until(limitMs, 'the second line came back', () => output.text() === 'one\ntwo')
  await must('sending end of file', cat.end())
  const exit = await within(limitMs, 'the exit of cat after end of file', cat.exit)
  await within(limitMs, 'the end of its output', output.done)
  assert.equal(exit.exitCode, 0)
  assert.equal(output.text(), 'one\ntwo')
}

defineCase<Sandboxed>({
  id: 'EX4',
  title: 'standard input: absent ends at once, open waits, end of file can be sent',
  subject: sandboxed,
  async run(sandbox, size) {
    const limitMs = size === 'full' ? 20_000 : 15_000
    for (const argv of [['cat'], ['sh', '-c', 'read line; echo "[$line]"'], ['python3', '-c', 'import sys; print(len(sys.stdin.read()))']]) {
      const outcome = await must(`${argv[0]} without input`, within(limitMs, `the end of ${argv[0]} without input`, sandbox.exec({ argv })))
      assert.equal(text(outcome.stdout), { cat: '', sh: '[]\n', python3: '0\n' }[argv[0] ?? ''], `${argv[0]} without input sees its end`)
    }
    await waitsForMore(sandbox, limitMs)
    const fed = patterned(size === 'full' ? 300_000 : 3_000, 4)
    const echoed = await must('cat with input', within(limitMs, 'the end of cat with input', sandbox.exec({ argv: ['cat'], stdin: fed })))
    assertSameBytes(echoed.stdout, fed, 'what cat was fed comes back')
    const empty = await must('wc with empty input', within(limitMs, 'the end of wc with empty input', sandbox.exec({ argv: ['wc', '-c'], stdin: utf8('') })))
    assert.equal(text(empty.stdout), '0\n')
    const early = sandbox.exec({ argv: ['head', '-c', '1'], stdin: fed })
    assert.equal((await must('head', within(limitMs, 'the end of a command that reads one byte of much', early))).stdout.byteLength, 1)
  },
  defects: {
    'commands without input hang': {
      breaks: (real) => ({
        ...real,
        exec: (command) => (command.stdin === undefined && command.argv?.[0] === 'cat' ? new Promise(() => {}) : real.exec(command)),
      }),
      says: /the end of cat without input did not come/,
    },
    'an open input is seen as ended': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          const closed: Running = {
            ...running,
            write: async (bytes) => {
              await running.write(bytes)
              await running.end()
              await running.exit
            },
          }
          return closed
        },
      }),
      says: /cat waits for more input/,
    },
    'end of file cannot be sent': {
      breaks: (real) => ({ ...real, spawn: async (command) => ({ ...(await real.spawn(command)), end: async () => {} }) }),
      says: /the exit of cat after end of file did not come/,
    },
    'input of a command is cut': {
      breaks: (real) => ({
        ...real,
        exec: (command) => real.exec(command.stdin === undefined ? command : { ...command, stdin: command.stdin.subarray(0, command.stdin.byteLength - 1) }),
      }),
      says: /what cat was fed comes back/,
    },
  },
})
