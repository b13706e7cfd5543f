import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, CreateSandboxSchema, ExecSchema, MakeDirectorySchema, parserOf } from '../src/index.ts'

const create = parserOf(CreateSandboxSchema)

const refused: [name: string, input: unknown, path: string][] = [
  ['an unknown field', { cpu: 1 }, '/cpu'],
  ['an unknown nested field', { resources: { cores: 1 } }, '/resources/cores'],
  ['a wrong type', { ttl_seconds: '60' }, '/ttl_seconds'],
  ['a word outside a closed set', { isolation: 'vm' }, '/isolation'],
  ['a name shaped like nothing', { name: 'No Spaces' }, '/name'],
  ['an environment name that is not one', { env: { '1A': 'x' } }, '/env/1A'],
  ['NUL in an environment value', { env: { A: 'x\u0000y' } }, '/env/A'],
]

for (const [name, input, path] of refused) {
  test(`create refuses ${name} and names the field`, () => {
    assert.throws(
      () => create.parse(input),
      (error: unknown) => error instanceof CodedError && error.code === 'invalid_request' && (error.context.errors ?? []).some((field) => field.path === path),
    )
  })
}

test('create takes an empty body and a full one', () => {
  create.parse({})
  create.parse({
    template: 'base',
    name: 'build',
    resources: { vcpu: 0.5, memory_mb: 512 },
    env: { A: 'b' },
    metadata: { team: 'x' },
    ttl_seconds: 60,
    network: { mode: 'none' },
    isolation: 'auto',
  })
})

test('what has another form than it must is told the form in words, never as a pattern', () => {
  const refusals: [schema: Parameters<typeof parserOf>[0], input: unknown, says: RegExp][] = [
    [CreateSandboxSchema, { name: 'bad name' }, /^\/name must begin with a lower-case letter and go on with a-z, 0-9 and -, at most 63 characters\.$/],
    [CreateSandboxSchema, { template: 'Base' }, /^\/template must be the name of a template/],
    [ExecSchema, { cwd: 'nowhere' }, /^\/cwd must be an absolute path, such as \/workspace\.$/],
    [ExecSchema, { argv: ['a\0'] }, /^\/argv\/0 must hold no NUL character: write such bytes to a file\.$/],
    [ExecSchema, { process_key: 'a b' }, /^\/process_key must be 1 to 128 of/],
    [MakeDirectorySchema, { mode: '9' }, /^\/mode must be three or four octal digits, such as 0644\.$/],
  ]
  for (const [schema, input, says] of refusals) {
    assert.throws(
      () => parserOf(schema).parse(input),
      (error: unknown) => error instanceof CodedError && says.test(error.message),
      String(says),
    )
  }
})
