/** A host of an installation elsewhere: what of its settings stands before what. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { addressOf, environmentText } from '../src/joined-host.ts'

test('the address that is typed stands before the one in the environment, and that before the one that is found', () => {
  const env = { SANDGLASS_DATA_PLANE_HOST: '10.0.0.1' }
  assert.equal(addressOf({ address: '10.0.0.2', env }), '10.0.0.2')
  assert.equal(addressOf({ address: undefined, env }), '10.0.0.1')
  assert.equal(addressOf({ address: undefined, env: { SANDGLASS_DATA_PLANE_HOST: '' } }), undefined)
})

test('a setting arrives as it was given, whatever is in it', () => {
  const values = ['plain', 'two words', 'a "quoted" one', "it's", '$HOME `id` \\', '# no comment', 'two\nlines', '']
  for (const value of values) {
    const read = execFileSync('sh', ['-c', `${environmentText({ SETTING: value })}printf %s "$SETTING"`], { encoding: 'utf8' })
    assert.equal(read, value)
  }
})
