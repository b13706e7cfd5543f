/** A process behind compiled code does without what strips types; each role loads all of its own when it is asked to. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
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

/** A process that notes each of its runs. */
function counted(name: string): { readonly main: string; readonly runs: () => number } {
  const [main, runs] = [join(place, `${name}.mjs`), join(place, `${name}.runs`)]
  writeFileSync(main, `import { appendFileSync } from 'node:fs'\nappendFileSync(${JSON.stringify(runs)}, 'x')\n`)
  return { main, runs: () => (existsSync(runs) ? readFileSync(runs, 'utf8').length : 0) }
}

test('what is compiled once is not compiled again, until another version is to run', async () => {
  const { main, runs } = counted('once')
  const cache = join(place, 'once')
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  assert.equal(runs(), 1)
  writeFileSync(`${cache}.compiled-by`, 'v22.0.0 0.0.1\n')
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  assert.equal(runs(), 2)
})

test('what could not be compiled stops nobody, and is tried again', async () => {
  const { main, runs } = counted('again')
  const cache = join(place, 'again')
  await compileAhead(cache, OWNER, { command: join(place, 'nothing'), args: [] })
  await compileAhead(cache, OWNER, { command: NODE, args: ['--eval', 'process.exit(3)'] })
  await compileAhead(cache, OWNER, { command: NODE, args: [main] }, AbortSignal.abort())
  assert.equal(runs(), 0)
  await compileAhead(cache, OWNER, { command: NODE, args: [main] })
  assert.equal(runs(), 1)
})

test('under a narrow umask each user still reaches its folder', async () => {
  const { main } = counted('narrow')
  const before = process.umask(0o077)
  try {
    await compileAhead(join(place, 'narrow', 'role'), OWNER, { command: NODE, args: [main] })
  } finally {
    process.umask(before)
  }
  for (const folder of ['narrow', 'narrow/role']) assert.equal(statSync(join(place, folder)).mode & 0o777, 0o755, folder)
})
