/** A control plane that is stopped gives back all it held. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holdings, leaks, until } from '@sandglass/testkit'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

test('start and stop leave no connection, timer or file behind', async () => {
  const once = async (): Promise<void> => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create()
    await rig.remove(body.id)
  }
  await once()
  const before = holdings()
  await once()
  await once()
  await until('everything to be given back', () => leaks(before).length === 0).catch(() => undefined)
  assert.deepEqual(leaks(before), [])
})

test('a stop answers those who wait, and a second stop is the first', async () => {
  await using rig = await startRig(postgres.current)
  const waiting = rig.create({ name: 'waiting' }, { wait: 60 })
  await until('the create', async () => (await rig.call('GET', '/v1/sandboxes/waiting')).status === 200)
  await Promise.all([rig.stop(), rig.stop()])
  assert.equal((await waiting).status, 202)
})
