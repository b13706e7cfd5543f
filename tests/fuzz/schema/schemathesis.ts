/**
 * Schemathesis, pinned by version and hash with all that it needs, in a folder of its own in the cache: nothing is installed on the machine. It reads an
 * OpenAPI document, makes requests that fit it and requests that do not, and judges each answer by the same document.
 */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pythonWithPip } from '../../python.ts'

const run = promisify(execFile)
const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt')
const HOOKS = join(import.meta.dirname, 'hooks.py')
const CACHE = process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass'
const INSTALL_TIMEOUT_MS = 300_000
const ENTRY = 'from schemathesis.cli import schemathesis; schemathesis()'
const MOST_OUTPUT_CHARACTERS = 1_000_000

/** What an answer is judged by. */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
].join(',')

export type Attack = {
  readonly document: string
  readonly baseUrl: string
  readonly apiKey: string
  /** Regular expressions of paths. */
  readonly include?: string
  readonly exclude?: string
  /** Fixed values, such as `path.id`, where chance would only find nothing. */
  readonly parameters?: Readonly<Record<string, string>>
  readonly seed: number
  /** Requests of each operation in the phase that is left to chance. */
  readonly examples: number
  readonly timeoutMs: number
}

export type Verdict = { readonly exitCode: number | null; readonly output: string }

/** The folder with the packages, installed once per set of them. */
async function installed(python: string): Promise<string> {
  const digest = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 16)
  const folder = join(CACHE, 'fuzz', `schemathesis-${digest}`)
  if (existsSync(folder)) return folder
  mkdirSync(join(CACHE, 'fuzz'), { recursive: true })
  const beside = mkdtempSync(join(CACHE, 'fuzz', 'install-'))
  try {
    const options = ['--only-binary', ':all:', '--no-deps', '--require-hashes', '--quiet', '--disable-pip-version-check', '--target', beside]
    await run(python, ['-m', 'pip', 'install', ...options, '--requirement', REQUIREMENTS], { timeout: INSTALL_TIMEOUT_MS })
    renameSync(beside, folder)
  } finally {
    rmSync(beside, { recursive: true, force: true })
  }
  return folder
}

/** Strings of TOML and of JSON are written alike. */
const table = (entries: Readonly<Record<string, string>>): string =>
  Object.entries(entries)
    .map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`)
    .join('\n')

/** The key stands in the environment, not in the arguments, where every user of the machine could read it. */
const configuration = ({ parameters = {} }: Attack): string => `hooks = ${JSON.stringify(HOOKS)}

[parameters]
${table(parameters)}

[auth.openapi.key]
bearer = "\${SANDGLASS_FUZZ_KEY}"
`

/** One run to its end, or to its bound: then the exit code is null. */
export async function attack(what: Attack): Promise<Verdict> {
  const python = await pythonWithPip()
  const packages = await installed(python)
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-schema-'))
  try {
    const config = join(folder, 'schemathesis.toml')
    writeFileSync(config, configuration(what))
    const args = [
      ...['--config-file', config, 'run', what.document, '--url', what.baseUrl],
      ...['--phases', 'examples,coverage,fuzzing', '--checks', CHECKS],
      ...['--seed', String(what.seed), '--max-examples', String(what.examples), '--generation-database', 'none'],
      ...['--request-timeout', '20', '--continue-on-failure', '--no-color', '--warnings', 'off'],
      ...(what.include === undefined ? [] : ['--include-path-regex', what.include]),
      ...(what.exclude === undefined ? [] : ['--exclude-path-regex', what.exclude]),
    ]
    return await ended(python, args, what, { cwd: folder, packages })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function ended(python: string, args: readonly string[], { apiKey, timeoutMs }: Attack, place: { cwd: string; packages: string }): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const child = spawn(python, ['-c', ENTRY, ...args], {
      cwd: place.cwd,
      env: {
        PATH: process.env['PATH'],
        HOME: place.cwd,
        LANG: 'C.UTF-8',
        PYTHONPATH: place.packages,
        PYTHONDONTWRITEBYTECODE: '1',
        SANDGLASS_FUZZ_KEY: apiKey,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    let output = ''
    const keep = (chunk: Buffer): void => {
      if (output.length < MOST_OUTPUT_CHARACTERS) output += chunk.toString('utf8')
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', reject)
    child.once('close', (exitCode) => resolve({ exitCode, output: output.replaceAll(apiKey, 'sgk_…') }))
  })
}
