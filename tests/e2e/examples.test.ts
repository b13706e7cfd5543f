/** Every example runs as a user runs it, and prints what its first line says. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { sharedInstallation } from './file-installation.ts'
import { ROOT } from './installation.ts'

const TIMEOUT_MS = 60_000
const run = promisify(execFile)
const files = globSync('examples/*.ts', { cwd: ROOT }).sort()

test('there are examples', () => assert.ok(files.length >= 5, files.join(' ')))

for (const file of files) {
  test(`${file} prints what it says`, async () => {
    const promised = [...(readFileSync(join(ROOT, file), 'utf8').split('\n')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? '')
    assert.ok(promised.length > 0, 'its first line says what it prints, in backticks.')
    const { home } = await sharedInstallation()
    const { stdout, stderr } = await run(process.execPath, [join(ROOT, file)], { env: { ...process.env, SANDGLASS_HOME: home }, timeout: TIMEOUT_MS })
    assert.equal(stderr, '')
    for (const text of promised) assert.ok(stdout.includes(text), `${text} is in ${stdout}`)
  })
}
