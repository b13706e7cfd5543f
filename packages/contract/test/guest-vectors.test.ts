/** The guest agent's tests read the same files: what one side of the channel writes, the other reads. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import Type, { type Static, type TSchema } from 'typebox'
import Value from 'typebox/value'
import { CodedError, ERRORS, GuestFrameDecoder, LIMITS, parseGuestPreamble, StartProcessSchema, StdinReceiptSchema } from '../src/index.ts'

function vectors<T extends TSchema>(name: string, schema: T): Static<T>[] {
  const text = readFileSync(new URL(`../vectors/guest-protocol/${name}.json`, import.meta.url), 'utf8')
  return Value.Parse(Type.Array(schema), JSON.parse(text))
}

const Frames = Type.Object({ name: Type.String(), hex: Type.String(), expect: Type.Unknown() })
for (const vector of vectors('frames', Frames)) {
  test(`frames: ${vector.name}`, () => {
    const decoder = new GuestFrameDecoder()
    const decode = () => [...decoder.push(Buffer.from(vector.hex, 'hex'))]
    if (vector.expect === 'error') {
      assert.throws(decode, CodedError)
      return
    }
    const seen = decode().map((frame) =>
      frame.stream === 'status'
        ? { status: frame.status }
        : { stream: frame.stream, offset: frame.offset, bytes_hex: Buffer.from(frame.bytes).toString('hex') },
    )
    assert.equal(decoder.atBoundary, vector.expect !== 'incomplete')
    // Of a data frame that is cut, what has come is given out already; of a status nothing is.
    if (vector.expect === 'incomplete') assert.ok(seen.every((frame) => 'stream' in frame))
    else assert.deepEqual(seen, vector.expect)
  })
}

const Hello = Type.Object({ name: Type.String(), line: Type.String(), fields: Type.Record(Type.String(), Type.Unknown()) })
for (const vector of vectors('hello', Hello)) {
  test(`hello: ${vector.name}`, () => {
    assert.partialDeepStrictEqual(parseGuestPreamble(vector.line), vector.fields)
  })
}

const Errors = Type.Object({ code: Type.String(), status: Type.Integer() })
test('every error of the guest is in the registry with the same status', () => {
  const registry = new Map(Object.entries(ERRORS).map(([code, entry]) => [code, entry.status]))
  for (const { code, status } of vectors('errors', Errors)) assert.equal(registry.get(code), status, code)
})

const Limits = Type.Object({ name: Type.String(), value: Type.Integer() })
test('the guest holds every limit of the contract that it enforces', () => {
  const limits = new Map<string, number>(Object.entries(LIMITS))
  for (const { name, value } of vectors('limits', Limits)) assert.equal(limits.get(name), value, name)
})

const Receipts = Type.Object({ line: Type.String(), receipt: Type.Unknown() })
test('receipts of input are read as the guest writes them', () => {
  for (const { line, receipt } of vectors('stdin-receipts', Receipts)) assert.deepEqual(Value.Parse(StdinReceiptSchema, JSON.parse(line)), receipt)
})

/** What only the guest checks: a schema cannot say "exactly one of", nor look into base64. */
const BEYOND_SCHEMA = new Set(['no command', 'two commands', 'an empty program', 'a NUL in encoded argv', 'argv_b64 that is no base64'])
const Start = Type.Object({ name: Type.String(), body: Type.Unknown(), expect: Type.String() })
for (const vector of vectors('start-process', Start).filter(({ name }) => !BEYOND_SCHEMA.has(name))) {
  test(`start: ${vector.name}`, () => {
    assert.equal(Value.Check(StartProcessSchema, vector.body), vector.expect === 'ok')
  })
}
