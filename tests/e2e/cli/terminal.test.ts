/** A terminal over the SDK without the command line's `shell`, and `exec -t` without a terminal here. */
import { test } from 'node:test'
import { within } from '../bounds.ts'
import { sandboxed } from '../fixture.ts'
import { Screen } from '../subject/screen.ts'

test('a terminal: a prompt, job control, an interrupt, an end', async () => {
  const { value: sandbox, dispose } = await sandboxed()
  try {
    const terminal = await sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/bash'] })
    const screen = new Screen(terminal)
    await terminal.write('PS1="pro""mpt> "\n')
    await screen.shows(/prompt> $/, 20_000)
    await terminal.write('tty && [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo is-a-ter""minal\n')
    await screen.shows(/is-a-terminal/, 20_000)
    await terminal.write('(echo slee""ping; exec sleep 1000)\n')
    await screen.shows(/sleeping/, 20_000)
    await terminal.write('\u0003')
    await terminal.write('echo code=$?\n')
    await screen.shows(/code=130/, 20_000)
    await terminal.write('yes\n')
    await screen.shows(/y\r\ny\r\ny\r\n/, 20_000)
    // A flood must not keep an interrupt from arriving.
    await terminal.write('\u0003')
    await terminal.write('echo af""ter\n')
    await screen.shows(/after/, 20_000)
    await terminal.write('exit 5\n')
    await within(20_000, 'the end of the terminal', screen.done)
  } finally {
    await dispose()
  }
})
