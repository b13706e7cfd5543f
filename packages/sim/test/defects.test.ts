/** A deliberate defect replaces text of the code; where the code has moved on, the defect has to follow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFECTS, FOUND } from '../src/defects/table.ts'
import { replaced, sourceOf } from '../src/loading/hooks.ts'

for (const { name, off = [], sql } of DEFECTS) {
  test(`${name} is there to be switched off`, () => {
    assert.ok(off.length > 0 || sql !== undefined)
    for (const file of new Set(off.map((one) => one.file))) {
      const source = sourceOf(file)
      const inFile = off.filter((one) => one.file === file)
      assert.notEqual(replaced(file, source, inFile), source)
    }
  })
}

test('names are used once, and what is found has one', () => {
  const names = DEFECTS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  assert.deepEqual(
    [...FOUND].filter((name) => !names.includes(name)),
    [],
  )
})
