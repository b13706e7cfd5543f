/** Deliberate defects are texts in the place of others: each has to follow the code, or it is none. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFECTS, FOUND } from '../src/defects/table.ts'
import { isAtEdge, replaced, sourceOf } from '../src/loading/hooks.ts'

test('every replacement of every defect applies exactly once to the sources', () => {
  const stale: string[] = []
  for (const { name, off = [] } of DEFECTS) {
    for (const file of new Set(off.map((one) => one.file))) {
      try {
        const ofFile = off.filter((one) => one.file === file)
        if (isAtEdge(file)) stale.push(`${name}: ${file} is not loaded in a simulation`)
        else if (replaced(file, sourceOf(file), ofFile) === sourceOf(file)) stale.push(`${name}: ${file} stays as it is`)
      } catch (error) {
        stale.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  assert.deepEqual(stale, [])
})

test('a text that is there twice is refused, and so is one that is not', () => {
  const twice = { file: 'a.ts', replace: 'b', by: 'c' }
  assert.throws(() => replaced('a.ts', 'b b', [twice]), /a\.ts holds "b" 2 times/)
  assert.throws(() => replaced('a.ts', '', [twice]), /a\.ts holds "b" 0 times/)
  assert.equal(replaced('a.ts', 'a b', [{ ...twice, by: '$&' }]), 'a $&')
})

test('a defect has one name and does something, and what is found is in the table', () => {
  const names = DEFECTS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  assert.deepEqual(
    DEFECTS.filter(({ off = [], sql }) => off.length === 0 && sql === undefined).map(({ name }) => name),
    [],
  )
  assert.deepEqual(
    [...FOUND].filter((name) => !names.includes(name)),
    [],
  )
})
