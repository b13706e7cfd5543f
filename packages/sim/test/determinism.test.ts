/** A seed is a whole run: the same one does the same again, to the last line of its history. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSeeds } from '../src/seeds.ts'
import type { SeedResult } from '../src/simulation.ts'

async function digestsOf(seeds: readonly number[]): Promise<string[]> {
  const results: SeedResult[] = []
  await runSeeds({ seeds, workers: 1, historyLines: 60, onSeed: (result) => void results.push(result) })
  return results.map(({ digest }) => digest)
}

test('a seed has the same history again, in another thread and behind other seeds', async () => {
  const [first, second] = await digestsOf([3, 11])
  const [secondAgain, firstAgain] = await digestsOf([11, 3])
  assert.equal(firstAgain, first)
  assert.equal(secondAgain, second)
  assert.notEqual(first, second)
})
