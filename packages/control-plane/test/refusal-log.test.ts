/** What the audit log is told of peers that were refused again and again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Refusal, RefusalLog } from '../src/identities/refusal-log.ts'
import type { Transaction } from '../src/store/database.ts'

const REFUSAL: Refusal = { channel: 'join', reason: 'join_token_unknown', claimed: 'somebody', address: '10.0.0.1' }

test('repetitions are told when their minute is over, also when nobody comes any more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const counts: number[] = []
  const tx: Transaction = {
    run: async (_, values = []) => {
      counts.push(Number(/"count":(\d+)/.exec(JSON.stringify(values).replaceAll('\\', ''))?.[1]))
      return []
    },
    wake: () => undefined,
    finish: () => undefined,
    nested: async (work) => await work(),
  }
  const log = new RefusalLog({ db: { transaction: async (work) => await work(tx) }, monotonicMs: () => 0, failed: assert.ifError })
  for (let times = 0; times < 5; times += 1) log.note(REFUSAL)
  t.mock.timers.tick(59_999)
  await new Promise(setImmediate)
  assert.deepEqual(counts, [1])
  t.mock.timers.tick(1)
  await new Promise(setImmediate)
  assert.deepEqual(counts, [1, 4])
})
