/** Waiting for a sandbox that is started or stopped, against a scripted server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from '@sandglass/contract/operation'
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
