/**
 * `sandglass test [filter]`: every test of the project, in groups, with one closing line that counts them.
 *
 * Groups run one after another, cheapest first; within a group of light tests, files run two at a time. A filter takes the groups whose name
 * it equals, else the files whose path contains it. A skip without a reason counts as a failure, and so does a group in which nothing ran.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import * as shared from './e2e/shared-installation.ts'

const root = join(import.meta.dirname, '..')
const MINUTE_MS = 60_000
const TOLD_AGAIN_LINES = 12

/** `failures` are told again at the end, where whoever reads a long log begins. */
type Tally = { passed: number; failed: number; skips: string[]; failures: string[] }
/** What a group's files share: made before the first, taken down after the last. A failure of either is a failure of the group. */
type Around = { readonly setUp: () => Promise<void>; readonly tearDown: () => Promise<void> }
type Group = { readonly name: string; readonly run: (files: readonly string[]) => Promise<Tally>; readonly files: readonly string[] }

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const emptyTally = (): Tally => ({ passed: 0, failed: 0, skips: [], failures: [] })
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

function fail(tally: Tally, what: string): void {
  tally.failed += 1
  tally.failures.push(what)
  say(`FAIL ${what}`)
}

function withShared({ setUp, tearDown }: Around, tests: Group['run']): Group['run'] {
  return async (files) => {
    await setUp()
    const tally = await tests(files)
    try {
      await tearDown()
    } catch (error) {
      fail(tally, `after the last file:\n${indent(told(error))}`)
    }
    return tally
  }
}

/** Two files at a time, and behind them those that measure, one by one. */
function aloneLast(isAlone: (file: string) => boolean, tests: (concurrency: number) => Group['run']): Group['run'] {
  return async (files) => {
    const [first, last] = [files.filter((file) => !isAlone(file)), files.filter(isAlone)]
    const tallies = [first.length === 0 ? emptyTally() : await tests(2)(first), last.length === 0 ? emptyTally() : await tests(1)(last)]
    const tally = emptyTally()
    for (const one of tallies) {
      tally.passed += one.passed
      tally.failed += one.failed
      tally.skips.push(...one.skips)
      tally.failures.push(...one.failures)
    }
    return tally
  }
}

/** Runs files of node:test, each in a process of its own. */
function nodeTests(options: { concurrency: number; timeoutMs: number }): Group['run'] {
  return async (files) => {
    const tally = emptyTally()
    const stream = run({
      files: files.map((file) => join(root, file)),
      concurrency: options.concurrency,
      timeout: options.timeoutMs,
      isolation: 'process',
    })
    stream.on('test:pass', (event) => {
      if (event.details.type === 'suite' || event.name === event.file) return
      const name = `${event.file?.replace(`${root}/`, '') ?? ''}: ${event.name}`
      if (event.skip === undefined && event.todo === undefined) tally.passed += 1
      else if (typeof event.skip === 'string' && event.skip !== '') tally.skips.push(`${name}: ${event.skip}`)
      else fail(tally, `${name}: skipped without a reason`)
    })
    stream.on('test:fail', (event) => {
      const { error } = event.details
      const cause = error.cause instanceof Error ? error.cause : undefined
      // A suite or a parent fails because a child did; the child was counted.
      if (event.details.type === 'suite' || /^\d+ subtests? failed$/.test(cause?.message ?? String(error.cause ?? ''))) return
      fail(tally, `${event.file?.replace(`${root}/`, '') ?? ''}: ${event.name}\n${indent(told(error.cause ?? error))}`)
    })
    stream.on('test:stderr', (event) => process.stderr.write(event.message))
    stream.on('test:stdout', (event) => process.stdout.write(event.message))
    for await (const event of stream) {
      if (event.type === 'test:summary' && event.data.file !== undefined) {
        say(`  ${event.data.success ? 'ok  ' : 'FAIL'} ${event.data.file.replace(`${root}/`, '').padEnd(64)} ${seconds(event.data.duration_ms)}`)
      }
    }
    return tally
  }
}

/** An error with all it carries: its causes, and what an `AggregateError` holds. */
const told = (error: unknown): string => (typeof error === 'string' ? error : inspect(error, { depth: 4 }))

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')

/** Runs a program to its end, or kills it; its output and exit code. */
function program(command: string, args: readonly string[], cwd: string, timeoutMs: number): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` },
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.once('error', (error) => resolve({ code: null, output: error.message }))
    child.once('close', (code) => resolve({ code, output: Buffer.concat(chunks).toString('utf8') }))
  })
}

async function cargoTests([manifest = '']: readonly string[]): Promise<Tally> {
  const crate = dirname(manifest)
  const { code, output } = await program('cargo', ['test', '--locked', '--target', 'x86_64-unknown-linux-gnu'], join(root, crate), 15 * MINUTE_MS)
  const results = [...output.matchAll(/test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/g)]
  const tally = emptyTally()
  for (const [, passed, failed, ignored] of results) {
    tally.passed += Number(passed)
    tally.failed += Number(failed)
    for (let index = 0; index < Number(ignored); index += 1) tally.failed += 1
  }
  if (code !== 0) {
    fail(tally, `${crate}: cargo test\n${indent(output.slice(-8_000))}`)
    tally.failed = Math.max(1, tally.failed - 1)
  }
  return tally
}

async function check(): Promise<Tally> {
  const { code, output } = await program(process.execPath, [join(root, 'tools/check/main.ts')], root, 2 * MINUTE_MS)
  const tally = emptyTally()
  if (code === 0) tally.passed = 1
  else fail(tally, `check\n${indent(output)}`)
  return tally
}

const find = (pattern: string): string[] => globSync(pattern, { cwd: root }).sort()

const GROUPS: readonly Group[] = [
  { name: 'check', files: ['tools/check/main.ts'], run: check },
  { name: 'unit', files: find('{packages/*/{src,test},bench/test}/**/*.test.ts'), run: nodeTests({ concurrency: 2, timeoutMs: 5 * MINUTE_MS }) },
  { name: 'launcher', files: find('tests/launcher/**/*.test.ts'), run: nodeTests({ concurrency: 1, timeoutMs: 5 * MINUTE_MS }) },
  { name: 'deploy', files: find('tests/deploy/**/*.test.ts'), run: nodeTests({ concurrency: 1, timeoutMs: 5 * MINUTE_MS }) },
  { name: 'guest', files: ['native/guest-agent/Cargo.toml'], run: cargoTests },
  { name: 'warden', files: ['native/warden/Cargo.toml'], run: cargoTests },
  { name: 'e2e', files: find('tests/e2e/**/*.test.ts'), run: withShared(shared, nodeTests({ concurrency: 1, timeoutMs: 15 * MINUTE_MS })) },
  { name: 'real-input', files: find('tests/real-input/**/*.test.ts'), run: withShared(shared, nodeTests({ concurrency: 1, timeoutMs: 15 * MINUTE_MS })) },
  { name: 'fuzz', files: find('tests/fuzz/**/*.test.ts'), run: withShared(shared, nodeTests({ concurrency: 1, timeoutMs: 15 * MINUTE_MS })) },
  { name: 'sim', files: find('tests/sim/**/*.test.ts'), run: nodeTests({ concurrency: 1, timeoutMs: 30 * MINUTE_MS }) },
  {
    name: 'failure',
    files: find('tests/failure/**/*.test.ts'),
    run: aloneLast(
      (file) => /\/(churn|lease|takeover)\.test\.ts$/.test(file),
      (concurrency) => nodeTests({ concurrency, timeoutMs: 30 * MINUTE_MS }),
    ),
  },
]

function select(filter: string | undefined): Group[] {
  if (filter === undefined) return [...GROUPS]
  const named = GROUPS.filter((group) => group.name === filter)
  if (named.length > 0) return named
  return GROUPS.map((group) => ({ ...group, files: group.files.filter((file) => file.includes(filter)) })).filter((group) => group.files.length > 0)
}

const groups = select(process.argv[2])
const total = emptyTally()
for (const group of groups) {
  say(`${group.name}`)
  const began = performance.now()
  const tally = await group.run(group.files)
  if (tally.passed + tally.failed + tally.skips.length === 0) {
    fail(tally, `${group.name}: no test ran`)
  }
  total.passed += tally.passed
  total.failed += tally.failed
  total.skips.push(...tally.skips)
  total.failures.push(...tally.failures)
  say(`${group.name}: ${tally.passed} passed, ${tally.failed} failed, ${tally.skips.length} skipped in ${seconds(performance.now() - began)}`)
}
for (const failure of total.failures) say(`FAILED ${failure.split('\n').slice(0, TOLD_AGAIN_LINES).join('\n')}`)
for (const skip of total.skips) say(`skipped ${skip}`)
if (groups.length === 0) say(`No test matches ${JSON.stringify(process.argv[2])}. Groups: ${GROUPS.map((group) => group.name).join(', ')}.`)
say(`${total.passed} passed, ${total.failed} failed${total.skips.length === 0 ? '' : `, ${total.skips.length} skipped`}`)
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1
