/** When a pool counts as full, from the text that a host agent tells. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { Installation } from '../../tests/e2e/installation.ts'
import { fullPool, isFull, METRICS_PORT, PoolNotFull, type PoolState, poolState } from '../installation/pool.ts'

type Told = { readonly target?: number; readonly ready?: number; readonly booting?: number; readonly running?: number }

const text = ({ target = 20, ready = 20, booting = 0, running = 0 }: Told = {}): string =>
  [
    '# HELP sandglass_host_pool_members Members of pools.',
    '# TYPE sandglass_host_pool_members gauge',
    `sandglass_host_pool_target_members ${target}`,
    `sandglass_host_pool_members{state="booting"} ${booting}`,
    `sandglass_host_pool_members{state="ready"} ${ready}`,
    'sandglass_host_pool_members{state="picked"} 0',
    'sandglass_host_pool_members{state="ending"} 0',
    'sandglass_host_sandboxes{phase="launching"} 0',
    `sandglass_host_sandboxes{phase="running"} ${running}`,
    'sandglass_host_sandboxes{phase="ending"} 0',
    'sandglass_host_sandboxes{phase="gone"} 7',
    '',
  ].join('\n')

const state = (change: Partial<PoolState> = {}): PoolState => ({ target: 20, ready: 20, unsettled: 0, sandboxes: 0, ...change })

test('what the agent tells is read by name and label; those that are gone are no sandboxes', () => {
  assert.deepEqual(poolState(text()), state())
  assert.deepEqual(poolState(text({ target: 100, ready: 3, booting: 2, running: 5 })), { target: 100, ready: 3, unsettled: 2, sandboxes: 5 })
})

test('a value that is not told is no zero', () => {
  assert.equal(poolState(''), undefined)
  assert.equal(poolState(text().replace(/^.*"picked".*\n/m, '')), undefined)
})

test('a pool is full with exactly its members, none on the way, and no sandbox beside it', () => {
  assert.ok(isFull(state(), 20))
  for (const change of [{ ready: 19 }, { ready: 21 }, { target: 19 }, { unsettled: 1 }, { sandboxes: 1 }])
    assert.ok(!isFull(state(change), 20), JSON.stringify(change))
  assert.ok(isFull(state({ target: 0, ready: 0 }), 0), 'no pool is a setting, too')
})

test('members that only boot are waited for; whoever is interrupted waits no longer', async () => {
  let looks = 0
  const agent = createServer((_, answer) => {
    looks += 1
    answer.end(looks < 3 ? text({ ready: 18, booting: 2 }) : text())
  })
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve))
  const address = agent.address()
  assert.ok(address !== null && typeof address === 'object')
  const installation = new Installation('/nonexistent', { [METRICS_PORT]: String(address.port) })
  try {
    await fullPool(installation, 20, new AbortController().signal)
    assert.equal(looks, 3)
    await assert.rejects(fullPool(installation, 21, AbortSignal.abort(new Error('enough'))), /enough/)
  } finally {
    agent.close()
    agent.closeAllConnections()
  }
})

test('a pool that does not fill in time is named with what was seen', async () => {
  const nobody = new Installation('/nonexistent', { [METRICS_PORT]: '1' })
  await assert.rejects(fullPool(nobody, 20, new AbortController().signal, 0), (error) => error instanceof PoolNotFull && /nothing of it/.test(error.message))
})
