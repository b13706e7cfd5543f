/** Waiting for a sandbox that is started or stopped, against a scripted server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError } from '@sandglass/contract/errors'
import type { Operation } from '@sandglass/contract/operation'
import { problemOf } from '@sandglass/contract/problem'
import { Sandbox, Sandglass } from '../src/index.ts'
import { wireSandbox } from './scripted-sandboxes.ts'
import { ScriptedServer } from './scripted-server.ts'

const clientOf = (server: ScriptedServer): Sandglass => new Sandglass({ url: server.url, apiKey: `sgk_${'a'.repeat(43)}` })

const wireOperation = (id: string, change: Partial<Operation>): Operation => ({
  id,
  kind: 'sandbox.create',
  status: 'succeeded',
  sandbox_id: 'sbl1aaaaaaaaaaaaaaaa',
  problem: null,
  created_at: '2026-01-01T00:00:00Z',
  ended_at: '2026-01-01T00:00:01Z',
  ...change,
})

const CREATED = 'opaaaaaaaaaaaaaaaa'
const ASKED = 'opbbbbbbbbbbbbbbbb'

test('getOrCreate waits for one that pauses before a restart, though no operation of it is pending', async () => {
  await using server = await ScriptedServer.start()
  let status: 'pending' | 'ready' = 'pending'
  server.on('GET', /^\/v1\/sandboxes\/(build|sb\w+)$/, () => ({ status: 200, json: wireSandbox(server, { name: 'build', status, operation_id: CREATED }) }))
  server.on('GET', new RegExp(`operations/${CREATED}$`), () => ({ status: 200, json: wireOperation(CREATED, {}) }))
  server.on('POST', /\/start$/, () => ({ status: 202, json: wireSandbox(server, { name: 'build', status: 'pending', operation_id: ASKED }) }))
  server.on('GET', new RegExp(`operations/${ASKED}$`), () => {
    status = 'ready'
    return { status: 200, json: wireOperation(ASKED, { kind: 'sandbox.start' }) }
  })
  const sandbox = await Sandbox.getOrCreate({ name: 'build', client: clientOf(server) })
  assert.deepEqual([sandbox.status, sandbox.wasCreated], ['ready', false])
})

test('getOrCreate asks nothing of one that is ready', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /sandboxes\/build$/, () => ({ status: 200, json: wireSandbox(server, { name: 'build' }) }))
  await Sandbox.getOrCreate({ name: 'build', client: clientOf(server) })
  assert.equal(server.countOf('POST', /./), 0)
})

test('stop waits for the end of one that failed, as long as something of it may run', async () => {
  await using server = await ScriptedServer.start()
  const failed = { status: 'failed', desired: 'stopped' } as const
  const json = wireSandbox(server, { ...failed, operation_id: ASKED })
  server.on('GET', /sandboxes\/sb\w+$/, () => ({ status: 200, json }))
  server.on('POST', /\/stop$/, () => ({ status: 202, headers: { location: `/v1/operations/${ASKED}` }, json }))
  let left = 2
  server.on('GET', new RegExp(`operations/${ASKED}$`), () => {
    left -= 1
    const pending = { status: 'pending', ended_at: null } as const
    return { status: 200, json: wireOperation(ASKED, { kind: 'sandbox.stop', ...(left > 0 ? pending : {}) }) }
  })
  const sandbox = await Sandbox.get('sbl1aaaaaaaaaaaaaaaa', { client: clientOf(server) })
  assert.equal((await sandbox.stop()).status, 'failed')
  assert.equal(left, 0)
})

test('stop of one whose start failed and is over is done, though the latest operation is that start', async () => {
  await using server = await ScriptedServer.start()
  const json = wireSandbox(server, { status: 'failed', desired: 'stopped', operation_id: CREATED })
  server.on('GET', /sandboxes\/sb\w+$/, () => ({ status: 200, json }))
  server.on('POST', /\/stop$/, () => ({ status: 200, json }))
  const start = wireOperation(CREATED, { status: 'failed', problem: problemOf(new CodedError('sandbox_start_failed')) })
  server.on('GET', new RegExp(`operations/${CREATED}$`), () => ({ status: 200, json: start }))
  const sandbox = await Sandbox.get('sbl1aaaaaaaaaaaaaaaa', { client: clientOf(server) })
  assert.equal((await sandbox.stop()).status, 'failed')
})
