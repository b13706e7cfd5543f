/** FI3: binary turned into U+FFFD. */
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { patterned, text, utf8 } from '../subject/bytes.ts'
import { ask, assertSameBytes } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

/** One transparent pixel. */
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const CONTENTS: Readonly<Record<string, Uint8Array>> = {
  png: PNG,
  random: patterned(100_003, 3),
  'every-byte': Uint8Array.from({ length: 512 }, (_, index) => index % 256),
  'line-ends': Buffer.from('\ufeffa\r\nb\rc\n\n\0'),
}
/** Reads base64 on standard input and writes the bytes; the other way for the way back. */
const INTO = 'import base64, sys; open(sys.argv[1], "wb").write(base64.b64decode(sys.stdin.read()))'
const OUT_OF = 'import base64, sys; print(base64.b64encode(open(sys.argv[1], "rb").read()).decode())'

defineCase<Sandboxed>({
  id: 'FI3',
  title: 'binary files are the same bytes inside and outside',
  subject: sandboxed,
  async run(sandbox) {
    for (const [name, bytes] of Object.entries(CONTENTS)) {
      await must(`uploading ${name}`, sandbox.files.write(`/tmp/${name}`, bytes))
      const inside = Buffer.from(await ask(sandbox, { argv: ['python3', '-c', OUT_OF, `/tmp/${name}`] }), 'base64')
      assertSameBytes(inside, bytes, `${name}, uploaded and seen inside`)
      await ask(sandbox, { argv: ['python3', '-c', INTO, `/tmp/made-${name}`], stdin: utf8(Buffer.from(bytes).toString('base64')) })
      assertSameBytes(await must(`downloading ${name}`, sandbox.files.read(`/tmp/made-${name}`)), bytes, `${name}, made inside and downloaded`)
    }
  },
  defects: {
    'an upload goes through text': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          write: (path, content, options) => real.files.write(path, content instanceof Uint8Array ? utf8(text(content)) : content, options),
        },
      }),
      says: /png, uploaded and seen inside/,
    },
    'a download goes through text': {
      breaks: (real) => ({ ...real, files: { ...real.files, read: async (path) => utf8(text(await real.files.read(path))) } }),
      says: /png, made inside and downloaded/,
    },
    'line ends are changed': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          read: async (path) =>
            Buffer.from(
              Buffer.from(await real.files.read(path))
                .toString('latin1')
                .replaceAll('\r\n', '\n'),
              'latin1',
            ),
        },
      }),
      says: /made inside and downloaded/,
    },
  },
})
