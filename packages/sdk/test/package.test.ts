/** What is published: runs from plain JavaScript below node_modules, where Node.js strips no types, and has its types beside it. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildSdkPackage } from '../../../tools/sdk-package/build.ts'
import { ScriptedSandboxes } from './scripted-sandboxes.ts'
import { ScriptedServer } from './scripted-server.ts'

const ROOT = join(import.meta.dirname, '../../..')
const KEY = `sgk_${'k'.repeat(43)}`

const PROGRAM = `import { Sandbox, SandglassError } from '@sandglass/sdk'
import { MockSandglass } from '@sandglass/sdk/mock'
await using sandbox = await Sandbox.create()
await using mocked = await Sandbox.create({ client: new MockSandglass().client })
const refused = await Sandbox.get('nope').catch((error) => error instanceof SandglassError && error.code)
console.log(JSON.stringify([sandbox.status, refused, (await mocked.exec(['echo', 'x'])).stdout]))
`
/** What a library of its own would have: what it exports is written into declarations, and must be nameable there. */
const TYPED = `import { Sandbox, SandglassError, type SandglassOptions } from '@sandglass/sdk'
import { MockSandglass } from '@sandglass/sdk/mock'
export const open = () => Sandbox.create({ resources: { memoryMb: 256 } })
export const sandbox = await open()
export const text: string = (await sandbox.exec(['true'])).stdout
export const spawned = await sandbox.spawn(['cat'], { stdin: true })
export const terminal = await sandbox.terminal({ processKey: 'python' })
export const listed = sandbox.files.list('/workspace')
export const content = await sandbox.files.open('/workspace/x')
export const mock = new MockSandglass()
export const options: SandglassOptions = { url: 'http://x', apiKey: 'k' }
export async function* lines(): AsyncGenerator<string> {
  for await (const part of spawned.stdout.text()) yield part
}
// @ts-expect-error there is no such option
await Sandbox.create({ memory: 256 })
if (text === '' && new SandglassError('internal').code === 'internal') throw new Error(sandbox.id)
`
const LIBRARIES = {
  'with DOM': { lib: ['es2024', 'dom', 'esnext.disposable'], types: [] },
  'without DOM': { lib: ['es2024', 'esnext.disposable'], types: ['node'] },
} as const

function run(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env): string {
  return execFileSync(program, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** As strict as it gets, with every declaration read: a user's project must be able to be so too. */
function checkProject(folder: string, name: string, libraries: { readonly lib: readonly string[]; readonly types: readonly string[] }): void {
  const out = join(folder, 'out', name.replaceAll(' ', '-'))
  const compilerOptions = {
    ...libraries,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    module: 'nodenext',
    target: 'es2024',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    skipLibCheck: false,
    declaration: true,
    outDir: out,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }))
  run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', '.'], folder)
  assert.match(readFileSync(join(out, 'typed.js'), 'utf8'), /@sandglass\/sdk/, name)
  assert.match(readFileSync(join(out, 'typed.d.ts'), 'utf8'), /sandbox: Sandbox/, name)
}

test('the package runs and type-checks outside this repository', { timeout: 120_000 }, async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-package-'))
  try {
    const modules = join(folder, 'node_modules')
    const built = buildSdkPackage(join(modules, '@sandglass/sdk'))
    const { dependencies, exports, imports } = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'))
    assert.deepEqual(Object.keys(dependencies), ['typebox'])
    assert.deepEqual(Object.keys(imports['#platform']), ['browser', 'default'])
    assert.ok('.' in exports)
    const [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--silent'], built))
    const files: string[] = packed.files.map(({ path }: { path: string }) => path)
    for (const file of [
      'README.md',
      'LICENSE',
      'package.json',
      'sdk/src/index.js',
      'sdk/src/index.d.ts',
      'sdk/src/platform-browser.js',
      'contract/src/sandbox.js',
    ])
      assert.ok(files.includes(file), file)
    assert.deepEqual(
      files.filter((file) => /\.test\.|(?<!\.d)\.ts$/.test(file)),
      [],
    )
    mkdirSync(modules, { recursive: true })
    symlinkSync(join(ROOT, 'node_modules/typebox'), join(modules, 'typebox'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'program.js'), PROGRAM)
    writeFileSync(join(folder, 'typed.ts'), TYPED)
    const env = { PATH: process.env['PATH'], SANDGLASS_URL: server.url, SANDGLASS_API_KEY: KEY }
    const child = spawn(process.execPath, ['program.js'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    assert.equal(await new Promise((resolve) => child.once('close', resolve)), 0)
    assert.deepEqual(JSON.parse(output), ['ready', 'sandbox_not_found', 'x\n'])
    assert.equal(sandboxes.deleted.size, 1)
    for (const [name, libraries] of Object.entries(LIBRARIES)) checkProject(folder, name, libraries)
    const old = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'22.11.0'})`
    const refused = spawnSync(process.execPath, ['--import', old, 'program.js'], { cwd: folder, env, encoding: 'utf8' })
    assert.equal(refused.status, 1)
    assert.match(refused.stderr, /@sandglass\/sdk needs Node\.js 24 or newer; this is 22\.11\.0\./)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
