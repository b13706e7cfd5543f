import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newPoolMemberId } from '@sandglass/contract'
import { memberName } from '../../src/domain/runtime-name.ts'
import { recordStart } from '../../src/domain/sandbox-record.ts'
import { writeAtomically } from '../../src/state/atomic-file.ts'
import { hostRecords } from '../../src/state/host-records.ts'
import { poolRecords } from '../../src/state/pool-records.ts'
import { sandboxRecords } from '../../src/state/sandbox-records.ts'
import { recordIn, SANDBOX, spec, ticketOf } from '../domain/builders.ts'

async function directory(run: (path: string) => Promise<void>): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), 'sgha-state-'))
  try {
    await run(path)
  } finally {
    await rm(path, { recursive: true, force: true })
  }
}

test('a record comes back as it was written, and is gone when forgotten', () =>
  directory(async (path) => {
    const records = sandboxRecords(path)
    for (const phase of ['launching', 'running', 'ending', 'gone'] as const) {
      await records.write(recordIn(phase))
      assert.deepEqual(await records.load(), { records: [recordIn(phase)], damaged: [] })
    }
    await records.forget(SANDBOX)
    assert.deepEqual(await records.load(), { records: [], damaged: [] })
  }))

test('the record of a claim comes back with its member and its pool, and one of an agent that knew no pools as a cold start', () =>
  directory(async (path) => {
    const pool = { key: 'a'.repeat(64), version: 7, target: 2 }
    const name = memberName(newPoolMemberId(randomBytes))
    const claimed = recordStart(ticketOf({ pool }), spec, { name, evidence: { driver: 'fake' }, guest_boot_id: '1'.repeat(32) })
    await sandboxRecords(path).write(claimed)
    assert.deepEqual((await sandboxRecords(path).load()).records, [claimed])
    assert.deepEqual([claimed.runtime.name, claimed.runtime.path, claimed.pool?.position], [name, 'claimed', pool])
    const { pool: _pool, runtime, ...old } = recordIn('running')
    if (runtime === null) throw new Error('no runtime')
    const { name: _name, path: _path, ...intent } = runtime
    await writeFile(join(path, `${SANDBOX}.json`), JSON.stringify({ ...old, runtime: intent }))
    assert.deepEqual((await sandboxRecords(path).load()).records, [recordIn('running')])
  }))

test('positions of pools come back in their epoch only', () =>
  directory(async (path) => {
    const records = poolRecords(path)
    const pool = { key: 'b'.repeat(64), version: 3, target: 1, spec: null }
    await records.write(4, pool)
    assert.deepEqual(await records.load(4), [pool])
    assert.deepEqual(await records.load(5), [])
    await records.forgetAll()
    assert.deepEqual(await records.load(4), [])
  }))

test('a write that a crash cut short leaves the old record, and its rest is removed', () =>
  directory(async (path) => {
    const records = sandboxRecords(path)
    await records.write(recordIn('running'))
    await writeFile(join(path, `.tmp-${SANDBOX}.json`), '{"format":1,"sandb')
    assert.deepEqual(await records.load(), { records: [recordIn('running')], damaged: [] })
    assert.deepEqual(await readdir(path), [`${SANDBOX}.json`])
  }))

const damages: [name: string, text: string][] = [
  ['an empty file', ''],
  ['half a file', JSON.stringify(recordIn('gone')).slice(0, 40)],
  ['an unknown field', JSON.stringify({ ...recordIn('gone'), extra: 1 })],
  ['a phase that is none', JSON.stringify({ ...recordIn('gone'), phase: 'asleep' })],
  ['the record of another sandbox', JSON.stringify({ ...recordIn('gone'), sandbox: 'sblobbbbbbbbbbbbbbbb' })],
]
for (const [name, text] of damages) {
  test(`${name} is damage, never a sandbox that is unknown`, () =>
    directory(async (path) => {
      await writeFile(join(path, `${SANDBOX}.json`), text)
      assert.deepEqual(await sandboxRecords(path).load(), { records: [], damaged: [SANDBOX] })
    }))
}

test('the host id is made once and kept; a damaged host record stops the agent', () =>
  directory(async (path) => {
    const file = join(path, 'host.json')
    const first = await hostRecords(file, randomBytes).load('boot-one')
    assert.equal((await hostRecords(file, randomBytes).load('boot-two')).host_id, first.host_id)
    await writeAtomically(file, '{"format":1}')
    await assert.rejects(hostRecords(file, randomBytes).load('boot-one'))
  }))
