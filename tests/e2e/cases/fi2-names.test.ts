/** FI2: names outside ASCII, and names that are no text at all. Over the SDK and over bare HTTP. */
import assert from 'node:assert/strict'
import { must } from '../bounds.ts'
import { type Defect, defineCase } from '../case.ts'
import { sandboxedWithHttp } from '../fixture.ts'
import { sha256, utf8 } from '../subject/bytes.ts'
import { ask, assertSameBytes } from '../subject/inside.ts'
import type { RawFiles } from '../subject/raw-files.ts'
import type { Path, Sandboxed } from '../subject/sandboxed.ts'

type Subject = { readonly sandbox: Sandboxed; readonly ways: Readonly<Record<'sdk' | 'http', RawFiles>> }

const NAMES: readonly { readonly what: string; readonly name: Uint8Array }[] = [
  { what: 'emoji', name: utf8('🧪 test 🤣.txt') },
  { what: 'composed', name: utf8('caf\u00e9') },
  { what: 'decomposed', name: utf8('cafe\u0301') },
  { what: 'CJK', name: utf8('日本語 文件.txt') },
  { what: 'right to left', name: utf8('שלום') },
  { what: 'spaces', name: utf8('  two  spaces  ') },
  { what: 'characters of URLs', name: utf8('#?%&"+;=@:$,!*\'()<>|\\^`{}[]~') },
  { what: 'an escape that must not be decoded again', name: utf8('%41%2e%2e%2f%00') },
  { what: 'a plus and a space', name: utf8('a+b c') },
  { what: 'a newline', name: utf8('a\nb\r\tc') },
  { what: 'a leading minus', name: utf8('-rf') },
  { what: 'a leading dot', name: utf8('...') },
  { what: '255 bytes', name: utf8(`${'é'.repeat(127)}x`) },
  { what: 'invalid UTF-8', name: Uint8Array.of(0x61, 0xff, 0xfe, 0x80, 0x62) },
  { what: 'half a character', name: Uint8Array.of(0xe6, 0x97) },
]

const DIRECTORY = '/tmp/names'
const at = (directory: string, name: Uint8Array): Uint8Array => Buffer.concat([utf8(`${directory}/`), name])
/** Each name as hexadecimal text, by the sandbox's own view of the directory. */
const LIST_INSIDE = "import os, sys; print(' '.join(sorted(name.hex() for name in os.listdir(sys.argv[1].encode()))))"

async function thereAndBack(sandbox: Sandboxed, files: RawFiles, way: string): Promise<void> {
  const directory = `${DIRECTORY}-${way}`
  await ask(sandbox, { argv: ['mkdir', directory] })
  for (const { what, name } of NAMES) await must(`writing ${what} over ${way}`, files.write(at(directory, name), name))
  const expected = NAMES.map(({ name }) => Buffer.from(name).toString('hex')).sort()
  const inside = (await ask(sandbox, { argv: ['python3', '-c', LIST_INSIDE, directory] })).trim().split(' ')
  assert.deepEqual(inside, expected, `the names inside are the names that were sent over ${way}.`)
  const listed = (await must(`listing over ${way}`, files.list(directory))).map((entry) => Buffer.from(entry.name).toString('hex')).sort()
  assert.deepEqual(listed, expected, `the list over ${way} has the exact names.`)
  for (const { what, name } of NAMES) {
    assertSameBytes(await must(`reading ${what} over ${way}`, files.read(at(directory, name))), name, `the file named with ${what}, read over ${way}`)
    assert.equal((await must(`stat of ${what} over ${way}`, files.stat(at(directory, name)))).size, name.byteLength)
    const moved = at(directory, Buffer.concat([utf8('m'), name.subarray(0, 200)]))
    await must(`moving ${what} over ${way}`, files.move(at(directory, name), moved))
    assert.equal(sha256(await must(`reading ${what} after a move over ${way}`, files.read(moved))), sha256(name))
    await must(`removing ${what} over ${way}`, files.remove(moved))
  }
  assert.equal(await ask(sandbox, { argv: ['ls', '-A', directory] }), '', `nothing is left after everything was removed over ${way}.`)
}

/** Changes the path of every file call of both ways. */
function everyPath(change: (path: Buffer) => Uint8Array): Defect<Subject>['breaks'] {
  const changed = (path: Path): Path => change(Buffer.from(path))
  const wrap = (files: RawFiles): RawFiles => ({
    write: (path, content) => files.write(changed(path), content),
    read: (path) => files.read(changed(path)),
    stat: (path) => files.stat(changed(path)),
    list: (path) => files.list(changed(path)),
    remove: (path, options) => files.remove(changed(path), options),
    move: (from, to) => files.move(changed(from), changed(to)),
  })
  return ({ sandbox, ways }) => ({ sandbox, ways: { sdk: wrap(ways.sdk), http: wrap(ways.http) } })
}

const says = /the names inside are the names that were sent|failed/

defineCase<Subject>({
  id: 'FI2',
  title: 'names are bytes: there and back, listed, moved and removed, over the SDK and over bare HTTP',
  subject: sandboxedWithHttp,
  async run({ sandbox, ways }) {
    await thereAndBack(sandbox, ways.sdk, 'sdk')
    await thereAndBack(sandbox, ways.http, 'http')
  },
  defects: {
    'escapes are decoded twice': {
      breaks: everyPath((path) =>
        Buffer.from(
          path.toString('latin1').replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Math.max(1, Number.parseInt(hex, 16)))),
          'latin1',
        ),
      ),
      says,
    },
    'plus becomes a space': { breaks: everyPath((path) => Buffer.from(path.toString('latin1').replaceAll('+', ' '), 'latin1')), says },
    'names are normalised': {
      breaks: everyPath((path) => (path.includes(0xff) || path.includes(0x97) ? path : Buffer.from(path.toString('utf8').normalize('NFC'), 'utf8'))),
      says,
    },
    'bytes that are no UTF-8 become U+FFFD': { breaks: everyPath((path) => Buffer.from(path.toString('utf8'), 'utf8')), says },
    'names are trimmed': { breaks: everyPath((path) => Buffer.from(path.toString('latin1').replace(/ +$/, ''), 'latin1')), says },
    'the list shows U+FFFD': {
      breaks: ({ sandbox, ways }) => {
        const wrap = (files: RawFiles): RawFiles => ({
          ...files,
          list: async (path) => (await files.list(path)).map((entry) => ({ ...entry, name: utf8(Buffer.from(entry.name).toString('utf8')) })),
        })
        return { sandbox, ways: { sdk: wrap(ways.sdk), http: wrap(ways.http) } }
      },
      says: /the list over sdk has the exact names/,
    },
  },
})
