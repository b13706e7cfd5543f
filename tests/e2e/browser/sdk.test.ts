/** The published SDK in a browser, on a page of a listed origin, against a real installation; and a page of another origin, which gets nothing. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { buildSdkPackage } from '../../../tools/sdk-package/build.ts'
import { within } from '../bounds.ts'
import { afterTests, ownInstallation } from '../file-installation.ts'
import { ROOT } from '../installation.ts'
import { Browser, requireChromium } from './chromium.ts'
import { PageServer } from './page-server.ts'

const PAGE_MS = 90_000

const IMPORTS = {
  '@sandglass/sdk': '/sdk/sdk/src/index.js',
  '#platform': '/sdk/sdk/src/platform-browser.js',
  typebox: '/typebox/build/index.mjs',
  'typebox/schema': '/typebox/build/schema/index.mjs',
}

function pageOf(script: string): string {
  return `<!doctype html><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script><script type="module">
const report = (value) => fetch('/report', { method: 'POST', body: JSON.stringify(value) })
addEventListener('error', (event) => report({ failed: String(event.message) }))
try {
  const sdk = await import('@sandglass/sdk')
  report(await (async () => { ${script} })())
} catch (error) { report({ failed: String(error), code: error.code, stack: error.stack }) }
</script>`
}

let folder: string
let listed: PageServer
let stranger: PageServer
before(async () => {
  await requireChromium()
  folder = buildSdkPackage(join(mkdtempSync(join(tmpdir(), 'sandglass-sdk-')), 'sdk'))
  const places = { sdk: folder, typebox: join(ROOT, 'node_modules/typebox') }
  listed = await PageServer.start(places)
  stranger = await PageServer.start(places)
})
afterTests(async () => {
  await listed?.[Symbol.asyncDispose]()
  await stranger?.[Symbol.asyncDispose]()
  if (folder !== undefined) rmSync(join(folder, '..'), { recursive: true })
})

async function shown(server: PageServer, script: string): Promise<unknown> {
  server.html = pageOf(script)
  await using _browser = new Browser(server.origin)
  return JSON.parse(await within(PAGE_MS, 'the report of the page', server.report))
}

const clientOf = (url: string, key: string): string => `const client = new sdk.Sandglass({ url: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(key)} })`

test('a page creates, runs, streams, writes, reads, types and deletes', { timeout: 240_000 }, async () => {
  const installation = await ownInstallation(() => ({ SANDGLASS_ORIGINS: listed.origin }))
  const report = await shown(
    listed,
    `${clientOf(installation.apiUrl, installation.operatorKey)}
  const sandbox = await sdk.Sandbox.create({ client, ttlSeconds: 300 })
  try {
    const { stdout, exitCode } = await sandbox.exec(['python3', '-c', 'print(6*7)'])
    const cat = await sandbox.spawn(['cat'], { stdin: true })
    await cat.stdin.write('from a page')
    cat.stdin.close()
    const echoed = await cat.stdout.readText()
    const code = (await cat.exit).exitCode
    let progress = 0
    await sandbox.files.write('/tmp/blob', new Blob(['a'.repeat(100000), 'ß']), { onProgress: (bytes) => { progress = bytes } })
    const stat = await sandbox.files.stat('/tmp/blob')
    await sandbox.files.write('/tmp/stream', new Blob(['streamed']).stream())
    const streamed = await sandbox.files.readText('/tmp/stream')
    const terminal = await sandbox.terminal({ cols: 90, rows: 30 })
    await terminal.write('stty size; exit 5\\n')
    let screen = ''
    const decoder = new TextDecoder()
    for await (const bytes of terminal.output) screen += decoder.decode(bytes, { stream: true })
    const ended = await terminal.exit
    const trees = await sandbox.files.upload('/etc', '/tmp/x').then(() => 'went', (error) => error.code)
    return { stdout, exitCode, echoed, code, progress, size: stat.size, streamed, size30: /30 90/.test(screen), ended: ended.exitCode, trees }
  } finally {
    await sandbox.delete()
  }`,
  )
  assert.deepEqual(report, {
    stdout: '42\n',
    exitCode: 0,
    echoed: 'from a page',
    code: 0,
    progress: 100_002,
    size: 100_002,
    streamed: 'streamed',
    size30: true,
    ended: 5,
    trees: 'invalid_request',
  })
  assert.deepEqual(await installation.sandboxes(), [])
})

test('a page of another origin gets nothing, whatever key it has', { timeout: 120_000 }, async () => {
  const installation = await ownInstallation()
  const script = `${clientOf(installation.apiUrl, installation.operatorKey)}
  await sdk.Sandbox.create({ client, timeoutMs: 5000 })
  return 'made one'`
  const report = await shown(stranger, script)
  assert.match(JSON.stringify(report), /"code":"(unavailable|client_timeout)"/)
  assert.deepEqual(await installation.sandboxes(), [])
})
