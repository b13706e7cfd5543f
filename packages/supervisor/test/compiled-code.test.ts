/** A process behind compiled code does without what strips types; each role loads all of its own when it is asked to. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { compileAhead } from '../src/compiled-code.ts'

const NODE = process.execPath
const OWNER = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
const packages = join(import.meta.dirname, '../..')
const place = mkdtempSync(join(tmpdir(), 'sandglass-compiled-'))
after(() => rmSync(place, { recursive: true }))

/** Told at the end of a process by this module, which is loaded before any other: whether it has loaded what strips types. */
const witness = join(place, 'witness.mjs')
writeFileSync(
  witness,
  "process.on('exit', () => process.stderr.write(process.moduleLoadList.some((one) => one.includes('deps/amaro')) ? 'stripped\\n' : 'read\\n'))\n",
)

function told(main: string, cache: string): string {
  const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: cache }
  return spawnSync(NODE, ['--import', witness, main, COMPILE_ONLY], { env, cwd: '/', encoding: 'utf8' }).stderr
}

for (const role of ['supervisor', 'control-plane', 'gateway', 'host-agent']) {
  test(`the ${role} reads its code compiled`, async () => {
    const main = join(packages, role, 'src/main.ts')
    const cache = join(place, role)
    assert.equal(told(main, join(place, `${role}-empty`)), 'stripped\n')
    await compileAhead(cache, OWNER, { command: NODE, args: [main] })
    assert.equal(told(main, cache), 'read\n')
  })
}

test('what is compiled once is not compiled again, and what cannot be stops nobody', async () => {
  const cache = join(place, 'broken')
  await compileAhead(cache, OWNER, { command: join(place, 'nothing'), args: [] })
  const main = join(place, 'once.mjs')
  writeFileSync(main, `import { appendFileSync } from 'node:fs'\nappendFileSync(${JSON.stringify(join(place, 'runs'))}, 'x')\n`)
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  assert.equal(readFileSync(join(place, 'runs'), 'utf8'), 'x')
})
