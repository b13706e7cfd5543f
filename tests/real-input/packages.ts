/** The real input: source distributions of Python packages whose tests run on the standard library alone, pinned by version and hash. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pythonWithPip } from '../python.ts'

const run = promisify(execFile)
const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt')
const CACHE = join(process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass', 'real-input')
const DOWNLOAD_TIMEOUT_MS = 300_000

export type Package = {
  readonly name: string
  /** Of the archive, and of the directory in it. */
  readonly directory: string
  readonly sha256: string
  /** The top-level directory of the tests, below the package's directory. */
  readonly tests: string
}

export const PACKAGES: readonly Package[] = [
  { name: 'more-itertools', directory: 'more_itertools-11.2.1', sha256: 'cbf08fd0af284dc69718b9b76a8e6203df624d70209ea511e4219d350c856f63', tests: 'tests' },
  { name: 'simplejson', directory: 'simplejson-4.3.0', sha256: 'ffe34ab51a0d37e6d1c661a5672df00d2d5e18804e38eac07abffb83fa5ec3d7', tests: 'simplejson/tests' },
]

const fileOf = ({ directory }: Package): string => join(CACHE, `${directory}.tar.gz`)

function isThere(source: Package): boolean {
  return (
    existsSync(fileOf(source)) &&
    createHash('sha256')
      .update(readFileSync(fileOf(source)))
      .digest('hex') === source.sha256
  )
}

/** The archive of a package, downloaded once; pip refuses one with another hash. */
export async function archiveOf(source: Package): Promise<Buffer> {
  if (!isThere(source)) {
    mkdirSync(CACHE, { recursive: true })
    const beside = mkdtempSync(join(CACHE, 'download-'))
    try {
      const options = ['--no-binary', ':all:', '--no-deps', '--require-hashes', '--quiet', '--disable-pip-version-check', '--dest', beside]
      await run(await pythonWithPip(), ['-m', 'pip', 'download', ...options, '--requirement', REQUIREMENTS], { timeout: DOWNLOAD_TIMEOUT_MS })
      for (const one of PACKAGES) renameSync(join(beside, `${one.directory}.tar.gz`), fileOf(one))
    } finally {
      rmSync(beside, { recursive: true, force: true })
    }
  }
  if (!isThere(source)) throw new Error(`${fileOf(source)} is not the pinned file.`)
  return readFileSync(fileOf(source))
}

/**
 * What runs its tests: without site packages and user settings, so that only the standard library counts; nothing is written beside the sources.
 */
export const testCommand = (source: Package): readonly string[] => [
  '/usr/bin/python3',
  '-I',
  '-S',
  '-B',
  '-m',
  'unittest',
  'discover',
  '-v',
  '-s',
  source.tests,
  '-t',
  '.',
]
