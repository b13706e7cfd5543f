/** The harness itself: a check that cannot fail must be found out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mustTurnRed } from './case.ts'

test('a check that fails with the expected assertion counts as red', async () => {
  await mustTurnRed('nothing works', /one is two/, async () => assert.equal(1, 2, 'one is two'))
})

test('a check that stays green with its defect fails', async () => {
  await assert.rejects(
    mustTurnRed('nothing works', /./, async () => {}),
    /stayed green although nothing works/,
  )
})

test('a check that fails for another reason fails', async () => {
  await assert.rejects(
    mustTurnRed('nothing works', /one is two/, async () => assert.fail('the sky fell')),
    (error: unknown) =>
      error instanceof Error && /another reason/.test(error.message) && error.cause instanceof Error && error.cause.message === 'the sky fell',
  )
})

test('a check that breaks down without an assertion fails', async () => {
  await assert.rejects(
    mustTurnRed('nothing works', /./, async () => {
      throw new TypeError('no such method')
    }),
    /without an assertion/,
  )
})
