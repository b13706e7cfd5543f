import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SandboxUsage } from '@sandglass/sdk'
import { wireSandbox } from '../../sdk/test/scripted-sandboxes.ts'
import { problem, ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { ratesOf } from '../src/top/rates.ts'
import { run, runOnTerminal } from './command-line.ts'

const counted = (change: Partial<SandboxUsage> = {}): SandboxUsage => ({
  atMs: 10_000,
  cpuMs: 500,
  memoryBytes: 1,
  memoryLimitBytes: 2,
  diskReadBytes: 100,
  diskWrittenBytes: 100,
  networkReceivedBytes: 0,
  networkSentBytes: 0,
  ...change,
})

test('rates are differences over the host’s own time; a count that went back has none', () => {
  const now = counted({ atMs: 12_000, cpuMs: 1_500, diskReadBytes: 300, networkSentBytes: 7 })
  assert.deepEqual(ratesOf(counted(), now), { cpuPercent: 50, diskReadBytes: 100, diskWrittenBytes: 0, networkReceivedBytes: 0, networkSentBytes: 4 })
  assert.equal(ratesOf(undefined, now), null)
  assert.equal(ratesOf(counted({ atMs: 12_000 }), now), null, 'no time passed')
  assert.equal(ratesOf(counted({ cpuMs: 9_999 }), now), null, 'another life')
})

const IDLE = 'sbl1aaaaaaaaaaaaaaaa'
const BUSY = 'sbl1aaaaaaaaaaaaaaab'
const AWAY = 'sbl1aaaaaaaaaaaaaaac'

/** Three sandboxes; the second uses half a CPU, the third's host is away. */
async function scripted(): Promise<ScriptedServer> {
  const server = await ScriptedServer.start()
  const items = [IDLE, BUSY, AWAY].map((id, index) => wireSandbox(server, { id, name: `box-${index}` }))
  server.on('GET', /^\/v1\/sandboxes$/, () => ({ status: 200, json: { items, next_cursor: null } }))
  let asked = 0
  server.on('GET', /\/usage$/, ({ path }) => {
    if (path.includes(AWAY)) return problem('sandbox_ended')
    asked += 1
    const json = {
      at_ms: asked * 1_000,
      cpu_ms: path.includes(BUSY) ? asked * 500 : 5,
      memory_bytes: 300 * 1024 * 1024,
      memory_limit_bytes: 576 * 1024 * 1024,
      disk_read_bytes: 0,
      disk_written_bytes: asked * 2048,
      network_received_bytes: 0,
      network_sent_bytes: 0,
    }
    return { status: 200, json }
  })
  return server
}

test('top without a terminal prints one table, busiest first, and lists who cannot be asked', async () => {
  await using server = await scripted()
  const { code, stdout, stderr } = await run(server, ['top'])
  assert.deepEqual([code, stderr], [0, ''])
  const [head, ...rows] = stdout.toString().trimEnd().split('\n')
  assert.match(head ?? '', /^ID +NAME +CPU +OF +MEMORY +DISK READ +WRITTEN +NET IN +OUT +EXPIRES$/)
  assert.equal(rows.length, 3)
  assert.match(rows[0] ?? '', new RegExp(`^${BUSY} +box-1 +50\\.0 % +50 % +300 MB / 576 MB +0 B/s +2\\.0 KB/s +0 B/s +0 B/s`))
  assert.match(rows[1] ?? '', new RegExp(`^${IDLE} +box-0 +0\\.0 %`))
  assert.match(rows[2] ?? '', new RegExp(`^${AWAY} +box-2 +- `))
  assert.equal(
    server.asked.some(({ query }) => query.get('status') === 'ready'),
    true,
  )
})

test('top --json gives objects with numbers', async () => {
  await using server = await scripted()
  const { code, stdout } = await run(server, ['top', '--json=lines'])
  assert.equal(code, 0)
  const objects = stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line): { id: string; cpu_percent: number | null; memory_bytes: number | null } => JSON.parse(line))
  assert.deepEqual(
    objects.map(({ id, cpu_percent, memory_bytes }) => [id, cpu_percent, memory_bytes]),
    [
      [BUSY, 50, 300 * 1024 * 1024],
      [IDLE, 0, 300 * 1024 * 1024],
      [AWAY, null, null],
    ],
  )
})

test('on a terminal it draws again and again, and Ctrl-C leaves the screen as it was', async () => {
  await using server = await scripted()
  const terminal = await runOnTerminal(server, ['top', '--interval', '0.1'], { until: /50\.0 %[\s\S]*\u001b\[H[\s\S]*50\.0 %/, type: '\u0003' })
  assert.equal(terminal.code, 0)
  assert.match(terminal.output, /^\u001b\[\?1049h\u001b\[\?25l/)
  assert.match(terminal.output, /\u001b\[\?25h\u001b\[\?1049l$/)
})
