/**
 * `npm run check`: every rule that a machine can check, in one quick command, the same here and in CI.
 *
 * Checks run side by side; each prints nothing when it holds. The exit code is the number of checks that failed.
 */
import { spawn, spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { generatedFaults } from '../generate/files.ts'
import { layerFaults } from './layers.ts'

const root = join(import.meta.dirname, '../..')
const bin = (name: string): string => join(root, 'node_modules/.bin', name)

type Check = { readonly name: string; readonly run: () => Promise<string> }

/** Runs a program; its output when it fails, nothing when it succeeds. */
function program(name: string, command: string, args: readonly string[], cwd = root): Check {
  return {
    name,
    run: () =>
      new Promise((resolve) => {
        const child = spawn(command, args, {
          cwd,
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` },
        })
        const chunks: Buffer[] = []
        child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
        child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
        child.once('error', (error) => resolve(`${command}: ${error.message}`))
        child.once('close', (code) => resolve(code === 0 ? '' : `${Buffer.concat(chunks).toString('utf8').trim()}\n(exit ${code})`))
      }),
  }
}

const faults = (name: string, find: () => string[] | Promise<string[]>): Check => ({ name, run: async () => (await find()).join('\n') })

/** A tool that is there may still not run: a rustup proxy without a toolchain, a cargo without its formatter. */
const runs = (command: string, args: readonly string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0

const CRATES = ['guest-agent', 'warden']
const checks: Check[] = [
  program('format and lint', bin('biome'), ['check', '.', '--max-diagnostics=30', '--error-on-warnings', '--colors=off']),
  program('types', bin('tsc'), ['-p', root, '--pretty', 'false']),
  program('dead code', bin('knip'), ['--no-progress']),
  faults('layers', () => layerFaults(root)),
  faults('generated files', () => generatedFaults(root)),
]
if (runs('cargo', ['fmt', '--version']))
  for (const crate of CRATES) checks.push(program(`${crate} format`, 'cargo', ['fmt', '--check'], join(root, 'native', crate)))
if (runs('shellcheck', ['--version']))
  checks.push(program('shell scripts', 'shellcheck', ['-x', '-s', 'sh', '-S', 'warning', 'sandglass', ...globSync('{tools,images}/**/*.sh', { cwd: root })]))

let failed = 0
await Promise.all(
  checks.map(async (check) => {
    const began = performance.now()
    const output = await check.run()
    const seconds = ((performance.now() - began) / 1_000).toFixed(1)
    process.stdout.write(`${output === '' ? 'ok  ' : 'FAIL'} ${check.name.padEnd(20)} ${seconds} s\n${output === '' ? '' : `${output}\n`}`)
    if (output !== '') failed += 1
  }),
)
process.exitCode = failed
