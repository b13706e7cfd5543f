/**
 * The README's tour does what it says: each ```console block that is marked with `<!-- executed -->` is typed, line by line.
 *
 * A line with `$ ` is a command; the lines under it are what it prints. An ellipsis in them stands for anything, on one line or, alone on
 * its line, over many.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { sharedInstallation } from './file-installation.ts'
import { ROOT } from './installation.ts'

const MARK = /<!-- executed -->\s*\n+```console\n([\s\S]*?)\n```/g
const COMMAND_TIMEOUT_MS = 300_000

type Step = { readonly command: string; readonly expected: string }

/** Commands with what the text says that they print. */
function stepsOf(block: string): Step[] {
  const steps: { command: string; expected: string[] }[] = []
  for (const line of block.split('\n')) {
    const last = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), expected: [] })
    else if (last !== undefined && last.expected.length === 0 && last.command.endsWith('\\')) last.command += `\n${line.replace(/^> ?/, '')}`
    else last?.expected.push(line)
  }
  return steps.map(({ command, expected }) => ({ command, expected: expected.join('\n') }))
}

/** A pattern for printed text in which `…` stands for anything. */
function patternOf(expected: string): RegExp {
  const escaped = expected.trimEnd().replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(
    `^${escaped
      .replace(/(^|\n) *… *(?=\n|$)/g, '(?:$1[\\s\\S]*?)?')
      .replaceAll('…', '.*?')
      .replace(/ {2,}/g, ' +')}\\s*$`,
  )
}

/** Runs a line in one shell per block, so that variables of earlier lines are known. */
function type(shellLines: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', shellLines.join('\n')], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: COMMAND_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8')
      })
    }
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}

const MARKER = 'end-of-step-5f2c'

/** The outputs of the steps of a block, one for each. */
async function play(steps: readonly Step[], cwd: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { output } = await type(
    steps.flatMap(({ command }) => [command, `echo ${MARKER}`]),
    cwd,
    env,
  )
  return output.split(`${MARKER}\n`).slice(0, steps.length)
}

test('steps and patterns are read as the text means them', () => {
  assert.deepEqual(stepsOf('$ echo a\na\n$ true\n$ ls \\\n>   -l\nx'), [
    { command: 'echo a', expected: 'a' },
    { command: 'true', expected: '' },
    { command: 'ls \\\n  -l', expected: 'x' },
  ])
  assert.match('id sbl1 ready\n', patternOf('id … ready'))
  assert.match('first\nsecond\nthird\nlast\n', patternOf('first\n…\nlast'))
  assert.doesNotMatch('first\nother\n', patternOf('first\nlast'))
  assert.doesNotMatch('42\n43\n', patternOf('42'))
})

test('the tour of the README prints what it says', { timeout: 900_000 }, async () => {
  const blocks = [...readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(MARK)].map((match) => match[1] ?? '')
  assert.ok(blocks.length > 0, 'the README has blocks marked with <!-- executed -->')
  const installation = await sharedInstallation()
  // The tour is typed in the repository; `sandglass` is the launcher on the path.
  const env = {
    ...installation.env,
    SANDGLASS_URL: installation.apiUrl,
    SANDGLASS_API_KEY: installation.operatorKey,
    PATH: `${ROOT}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
  }
  for (const block of blocks) {
    const steps = stepsOf(block)
    const outputs = await play(steps, ROOT, env)
    for (const [index, { command, expected }] of steps.entries()) {
      const output = outputs[index]
      assert.ok(output !== undefined, `the tour came to \`${command}\``)
      if (expected !== '') assert.match(output, patternOf(expected), `\`${command}\` prints what the README says`)
    }
  }
})
