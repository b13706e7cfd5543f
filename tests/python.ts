/** Python of this machine, for tests that run Python's packages. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { installDebian } from './debian.ts'

const run = promisify(execFile)

/** A Python with pip; Debian's is installed where there is none. */
export async function pythonWithPip(): Promise<string> {
  for (const python of ['/usr/bin/python3', 'python3']) {
    try {
      await run(python, ['-m', 'pip', '--version'])
      return python
    } catch {}
  }
  await installDebian(['python3', 'python3-pip'])
  return '/usr/bin/python3'
}
