/** EX9: NUL bytes, blank lines and carriage returns are dropped. */
import { must, within } from '../bounds.ts'
import { type Defect, defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { collect } from '../subject/bytes.ts'
import { assertSameBytes } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const ODD: readonly { readonly name: string; readonly format: string; readonly bytes: Uint8Array }[] = [
  {
    name: 'NUL, bad UTF-8, blank lines, CR and no last newline',
    format: 'a\\0b\\xff\\n\\n\\n b\\r\\nc',
    bytes: Buffer.from('6100 62ff 0a0a 0a20 620d 0a63'.replaceAll(' ', ''), 'hex'),
  },
  { name: 'only a NUL', format: '\\0', bytes: Uint8Array.of(0) },
  { name: 'only newlines', format: '\\n\\n\\n', bytes: Uint8Array.of(10, 10, 10) },
  { name: 'blanks at both ends', format: ' \\t x \\t ', bytes: Buffer.from(' \t x \t ') },
  { name: 'CR alone and doubled', format: 'a\\rb\\r\\r\\n', bytes: Buffer.from('a\rb\r\r\n') },
  { name: 'a byte order mark', format: '\\xef\\xbb\\xbfx', bytes: Uint8Array.of(0xef, 0xbb, 0xbf, 0x78) },
  { name: 'escape sequences and other controls', format: '\\033[31m\\a\\b\\x7f\\x80\\x9b', bytes: Buffer.from('1b5b33316d07087f809b', 'hex') },
]

/** Changes every output of a subject, whichever way it is read. */
function everyOutput(change: (bytes: Uint8Array) => Uint8Array): (real: Sandboxed) => Sandboxed {
  return (real) => ({
    ...real,
    async exec(command) {
      const outcome = await real.exec(command)
      return { ...outcome, stdout: change(outcome.stdout), stderr: change(outcome.stderr) }
    },
  })
}

const without = (byte: number): Defect<Sandboxed>['breaks'] => everyOutput((bytes) => bytes.filter((value) => value !== byte))
const says = /of exec/

defineCase<Sandboxed>({
  id: 'EX9',
  title: 'NUL, bad UTF-8, blank lines, CR and a missing last newline survive on both streams',
  subject: sandboxed,
  async run(sandbox) {
    for (const { name, format, bytes } of ODD) {
      const out = await must(name, sandbox.exec({ argv: ['/usr/bin/printf', format] }))
      assertSameBytes(out.stdout, bytes, `${name}, standard output of exec`)
      const error = await must(name, sandbox.exec({ argv: ['sh', '-c', '/usr/bin/printf "$1" >&2', 'sh', format] }))
      assertSameBytes(error.stderr, bytes, `${name}, standard error of exec`)
      const running = await must(name, sandbox.spawn({ argv: ['/usr/bin/printf', format] }))
      const [streamed] = await within(20_000, name, Promise.all([collect(running.stdout), collect(running.stderr), running.exit]))
      assertSameBytes(streamed, bytes, `${name}, standard output of spawn`)
      assertSameBytes(await must(name, sandbox.output(running.id, 'stdout', 0)), bytes, `${name}, replay`)
      const echoed = await must(name, sandbox.exec({ argv: ['cat'], stdin: bytes }))
      assertSameBytes(echoed.stdout, bytes, `${name}, through standard input and standard output of exec`)
    }
  },
  defects: {
    'NUL bytes are swallowed': { breaks: without(0), says },
    'carriage returns are dropped': { breaks: without(13), says },
    'blank lines are dropped': { breaks: everyOutput((bytes) => Buffer.from(Buffer.from(bytes).toString('latin1').replace(/\n+/g, '\n'), 'latin1')), says },
    'bytes that are no UTF-8 become U+FFFD': { breaks: everyOutput((bytes) => Buffer.from(Buffer.from(bytes).toString('utf8'), 'utf8')), says },
    'a missing last newline is added': { breaks: everyOutput((bytes) => (bytes.at(-1) === 10 ? bytes : Buffer.concat([bytes, Uint8Array.of(10)]))), says },
    'output is trimmed': { breaks: everyOutput((bytes) => Buffer.from(Buffer.from(bytes).toString('latin1').trim(), 'latin1')), says },
    'a byte order mark is eaten': { breaks: everyOutput((bytes) => (bytes[0] === 0xef ? bytes.subarray(3) : bytes)), says },
  },
})
