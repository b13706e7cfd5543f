/** Strings that are no text are refused by the name of their field; everything else is what JSON says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, parseJsonText } from '../src/index.ts'

const refusal = (text: string): unknown => {
  try {
    return parseJsonText(text)
  } catch (error) {
    assert.ok(error instanceof CodedError)
    return [error.code, error.context.errors?.[0]?.path]
  }
}

test('half of a surrogate pair is refused wherever it stands', () => {
  assert.deepEqual(refusal('"\\ud800"'), ['invalid_request', '/'])
  assert.deepEqual(refusal('{"stdin":"a\\uDC00b"}'), ['invalid_request', '/stdin'])
  assert.deepEqual(refusal('{"argv":["a","\\ud83d"]}'), ['invalid_request', '/argv/1'])
  assert.deepEqual(refusal('{"metadata":{"\\udfff":1}}'), ['invalid_request', '/metadata'])
  assert.deepEqual(refusal(`${'['.repeat(100_000)}"\\ud800"${']'.repeat(100_000)}`), ['invalid_request', `/${'0/'.repeat(100)}`.slice(0, 200)])
})

test('whole pairs, other escapes and escaped backslashes are text', () => {
  assert.deepEqual(parseJsonText('{"a":"\\ud83e\\udd23","b":"\\u0000\\ud7ff\\ue000","c":"\\\\ud800"}'), { a: '🤣', b: '\0\ud7ff\ue000', c: '\\ud800' })
  assert.throws(() => parseJsonText('{"a":'), SyntaxError)
})
