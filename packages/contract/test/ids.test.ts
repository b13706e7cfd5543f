import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { newProcessId, newSandboxId, parseOperationId, parseProcessId, parseSandboxId } from '../src/index.ts'

test('a sandbox id is a DNS label that carries its region', () => {
  const id = newSandboxId('l1', randomBytes)
  assert.match(id, /^sbl1[a-z2-7]{16}$/)
  assert.equal(parseSandboxId(id), id)
})

test('ids of one kind are not ids of another, nor anything longer, upper case or with a newline', () => {
  const id = newSandboxId('l1', randomBytes)
  for (const text of [newProcessId(randomBytes), `${id}a`, id.toUpperCase(), `${id}\n`, ` ${id}`, '', '../etc'])
    assert.equal(parseSandboxId(text), undefined, JSON.stringify(text))
  assert.equal(parseProcessId(id), undefined)
  assert.equal(parseOperationId(id), undefined)
})

test('the random part comes from the given source, all 32 letters of it', () => {
  const letters = new Set<string>()
  for (let start = 0; start < 256; start += 16)
    for (const letter of newProcessId((size) => Uint8Array.from({ length: size }, (_, index) => start + index)).slice(2)) letters.add(letter)
  assert.equal(letters.size, 32)
})
