/** What the command line asks for, the order of sampling, and the proof of freshness. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseWishes, UsageError } from '../arguments.ts'
import { Freshness, NotFresh } from '../installation/freshness.ts'
import { environmentOf, MEMBERS, SETTINGS } from '../installation/settings.ts'
import { inFlight, interleave } from '../measure/interleave.ts'
import { CONTROL_FAMILIES, FAMILIES, ROW_IDS } from '../rows.ts'

test('rows are chosen by id, in any case of letters; unknown ones are named', () => {
  const wishes = parseWishes(['--only', 's1, E2', '--json', 'out.json', '--samples', '3'], ROW_IDS)
  assert.deepEqual([[...(wishes.only ?? [])], wishes.json, wishes.samples], [['S1', 'E2'], 'out.json', 3])
  assert.equal(parseWishes([], ROW_IDS).only, undefined)
  assert.throws(() => parseWishes(['--only', 'S1,Q9'], ROW_IDS), /no row Q9/)
  for (const wrong of [['--samples', '0'], ['--samples', '1.5'], ['--what'], ['S1'], ['--only']]) assert.throws(() => parseWishes(wrong, ROW_IDS), UsageError)
})

test('every row has one family, and every family a setting that is measured', () => {
  const ids = [...FAMILIES, ...CONTROL_FAMILIES].flatMap((family) => family.ids)
  assert.deepEqual([...ids].sort(), [...ROW_IDS].sort())
  for (const { setting } of FAMILIES) assert.ok(SETTINGS.includes(setting))
})

test('a setting keeps exactly the members that its rows wait for', () => {
  for (const setting of SETTINGS.filter((one) => one !== 'as installed')) {
    const { SANDGLASS_POOL_FLOOR: floor, SANDGLASS_POOL_CEILING: ceiling } = environmentOf(setting)
    assert.deepEqual([floor, ceiling], [String(MEMBERS[setting]), String(Math.max(1, MEMBERS[setting]))])
  }
  assert.deepEqual(environmentOf('as installed'), {}, 'what users get')
})

test('sides are sampled in turn, after a round that is not kept', async () => {
  const order: string[] = []
  const side = (name: string, each: number) => ({ each, sample: async (keep: boolean) => void order.push(keep ? name : name.toLowerCase()) })
  await interleave(2, [side('A', 2), side('B', 1)], new AbortController().signal)
  assert.equal(order.join(''), 'abAABAAB')
})

test('sampling stops where it is interrupted', async () => {
  const controller = new AbortController()
  let samples = 0
  const sample = async (): Promise<void> => {
    samples += 1
    if (samples === 3) controller.abort(new Error('enough'))
  }
  await assert.rejects(interleave(100, [{ each: 1, sample }], controller.signal), /enough/)
  assert.equal(samples, 3)
})

test('so many are in flight and no more; a failure ends it after those in flight', async () => {
  let running = 0
  let most = 0
  const task = (index: number) => async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    return index
  }
  assert.deepEqual(
    await inFlight(
      3,
      Array.from({ length: 10 }, (_, index) => task(index)),
    ),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  )
  assert.equal(most, 3)
  await assert.rejects(inFlight(2, [task(0), () => Promise.reject(new Error('no'))]), /no/)
  assert.equal(running, 0)
})

test('a boot id belongs to one sandbox', () => {
  const freshness = new Freshness()
  const bootId = '0b9f1c2d-0000-4000-8000-000000000001\n'
  freshness.told('sb1', bootId)
  freshness.told('sb1', bootId)
  assert.throws(() => freshness.told('sb2', bootId), NotFresh)
  assert.throws(() => freshness.told('sb3', 'cat: no such file'), NotFresh)
})
