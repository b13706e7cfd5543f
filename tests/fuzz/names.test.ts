/**
 * Names and paths, by chance: any bytes that a name may hold, at any place, through the API; a model says what must be there. What no name may
 * hold is refused, and changes nothing.
 */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { ErrorCode } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { must, within } from '../e2e/bounds.ts'
import { afterTests, sharedInstallation } from '../e2e/file-installation.ts'
import type { Installation } from '../e2e/installation.ts'
import { codeOf } from '../e2e/subject/coded.ts'
import { type RawFiles, rawFiles } from '../e2e/subject/raw-files.ts'
import type { Random } from '../failure/seed.ts'
import { pick, rounds } from './rounds.ts'
import { Witness } from './witness.ts'

const LIMIT_MS = 20_000
const STEPS = 24
const TEST_LIMIT_MS = 180_000
const NAME_BYTES = 255
/** Every refusal of a name that cannot be; which one it is depends on what is wrong first. */
const REFUSED: readonly ErrorCode[] = ['path_invalid', 'invalid_request', 'file_not_found', 'not_a_directory', 'is_a_directory', 'limit_exceeded']

let installation: Installation
let sandbox: Sandbox
let ways: readonly RawFiles[]
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 1_200 })
  const raw = rawFiles({ baseUrl: sandbox.resource.gateway_url, key: installation.operatorKey, sandboxId: sandbox.id })
  const { files } = sandbox
  const sdk: RawFiles = {
    write: (path, content) => files.write(path, content),
    read: (path) => files.read(path),
    stat: (path) => files.stat(path),
    async list(path) {
      const entries = []
      for await (const { nameBytes, type, size } of files.list(path, { pageSize: 7 })) entries.push({ name: nameBytes, type, size })
      return entries
    },
    remove: (path, options) => files.remove(path, options),
    async move(from, to) {
      await files.move(from, to)
    },
  }
  ways = [raw, sdk]
})
afterTests(() => sandbox?.delete())

const ALPHABETS: readonly string[] = ['abc', '.-_ ', '#?%&"\'\\<>|*;:+=~`$(){}[]', '\n\t\r\u0001\u007f', 'éñ日本語🤣', 'e\u0301\u200d\ufeff']

/** A name that a file system takes. */
function goodName(random: Random): Buffer {
  const kind = random.integer(10)
  if (kind === 0) return Buffer.alloc(NAME_BYTES, 0x61 + random.integer(26))
  if (kind <= 3) {
    const bytes = Buffer.from(random.bytes(1 + random.integer(40)).map((byte) => (byte === 0 || byte === 0x2f ? 0xff : byte)))
    return isDots(bytes) ? Buffer.from('dots') : bytes
  }
  let text = ''
  for (let length = 1 + random.integer(20); length > 0; length -= 1) text += pick(random, [...pick(random, ALPHABETS)])
  const bytes = Buffer.from(text, 'utf8').subarray(0, NAME_BYTES)
  return isDots(bytes) ? Buffer.from('dots') : bytes
}

const isDots = (bytes: Buffer): boolean => bytes.equals(Buffer.from('.')) || bytes.equals(Buffer.from('..'))

/** A path below the root of a round that names nothing that could be there. */
function badPath(random: Random, root: Buffer): Buffer {
  const name = goodName(random)
  return pick(random, [
    Buffer.concat([root, Buffer.from('/'), name, Buffer.from([0])]),
    Buffer.concat([root, Buffer.from('/'), Buffer.alloc(NAME_BYTES + 1, 0x62)]),
    Buffer.concat([root, ...Array.from({ length: 40 }, () => Buffer.from(`/${'c'.repeat(120)}`))]),
    Buffer.alloc(0),
    name,
    Buffer.concat([root, Buffer.from('/'), name, Buffer.from('/..')]),
    Buffer.concat([root, Buffer.from('/.')]),
    Buffer.concat([root, Buffer.from('/nowhere/'), name]),
  ])
}

type Model = Map<string, Buffer>

async function outcome(what: string, call: Promise<unknown>): Promise<ErrorCode | 'done'> {
  try {
    await within(LIMIT_MS, what, call)
    return 'done'
  } catch (error) {
    const code = codeOf(error)
    assert.ok(code !== undefined, `${what} fails with a code, not with ${String(error)}`)
    assert.notEqual(code, 'internal', `${what} is no internal error: ${String(error)}`)
    return code
  }
}

async function step(random: Random, root: Buffer, model: Model): Promise<void> {
  const files = pick(random, ways)
  const at = (name: Buffer): Buffer => Buffer.concat([root, Buffer.from('/'), name])
  const known = model.size > 0 && random.chance(0.7) ? Buffer.from(pick(random, [...model.keys()]), 'hex') : undefined
  const name = known ?? goodName(random)
  const key = name.toString('hex')
  const shown = JSON.stringify(name.toString('latin1'))
  const content = model.get(key)
  switch (random.integer(7)) {
    case 0:
    case 1: {
      const bytes = Buffer.from(random.bytes(random.integer(300)))
      assert.equal(await outcome(`writing ${shown}`, files.write(at(name), bytes)), 'done', `writing ${shown}`)
      model.set(key, bytes)
      return
    }
    case 2: {
      if (content === undefined) return assert.equal(await outcome(`reading ${shown}`, files.read(at(name))), 'file_not_found', `reading ${shown}`)
      assert.deepEqual(Buffer.from(await must(`reading ${shown}`, files.read(at(name)))), content, `the content of ${shown}`)
      return
    }
    case 3: {
      const expected = content === undefined ? 'file_not_found' : 'done'
      assert.equal(await outcome(`removing ${shown}`, files.remove(at(name))), expected, `removing ${shown}`)
      model.delete(key)
      return
    }
    case 4: {
      const to = goodName(random)
      const expected = content === undefined ? 'file_not_found' : 'done'
      assert.equal(await outcome(`moving ${shown}`, files.move(at(name), at(to))), expected, `moving ${shown} to ${JSON.stringify(to.toString('latin1'))}`)
      if (content === undefined) return
      model.delete(key)
      model.set(to.toString('hex'), content)
      return
    }
    case 5: {
      const path = badPath(random, root)
      const call = pick(random, [() => files.write(path, new Uint8Array(3)), () => files.read(path), () => files.stat(path), () => files.move(path, path)])
      const code = await outcome(`a call with ${JSON.stringify(path.toString('latin1').slice(0, 80))}`, call())
      // `stat` of `dir/name/..` and `dir/.` is a question that has an answer.
      if (code !== 'done') assert.ok(REFUSED.includes(code), `a bad path is refused as one: ${code}`)
      return
    }
    default: {
      const listed = await must('listing', within(LIMIT_MS, 'listing', files.list(root)))
      const names = listed.map((entry) => Buffer.from(entry.name).toString('hex'))
      assert.deepEqual(names, [...model.keys()].sort(), 'the list names what is there, in the order of bytes')
    }
  }
}

const INSIDE = 'import os, sys\nfor name in sorted(os.listdir(os.fsencode(sys.argv[1]))): print(name.hex())'

test('names and paths by chance do what a model says', { timeout: TEST_LIMIT_MS }, async () => {
  const witness = new Witness(installation)
  await rounds('names', async (random, index) => {
    const root = Buffer.from(`/tmp/names-${index}`)
    await sandbox.files.mkdir(root)
    const model: Model = new Map()
    for (let count = 0; count < STEPS; count += 1) await step(random, root, model)
    const { stdout } = await sandbox.exec(['python3', '-c', INSIDE, root.toString()])
    assert.deepEqual(stdout.split('\n').slice(0, -1), [...model.keys()].sort(), 'the kernel of the sandbox sees the same names')
    await sandbox.files.remove(root, { recursive: true })
  })
  await witness.unharmed([sandbox])
})
