/** Opens a terminal, leaves it, and comes back to it at the byte where it was left. Prints `found again`. */
import { Sandbox, type Terminal } from '@sandglass/sdk'

await using sandbox = await Sandbox.create({ ttlSeconds: 600 })

/** Reads until a text was printed. */
async function waitFor(terminal: Terminal, text: string): Promise<void> {
  let seen = ''
  for (let bytes = await terminal.output.read(); bytes !== undefined; bytes = await terminal.output.read()) {
    seen += Buffer.from(bytes).toString()
    if (seen.includes(text)) return
  }
  throw new Error(`the terminal ended before it printed ${text}`)
}

const terminal = await sandbox.terminal({ cols: 120, rows: 40 })
await terminal.write('export MARK=again; echo "size $(stty size)"\n')
await waitFor(terminal, 'size 40 120')
terminal.detach()

const back = await sandbox.terminal({ id: terminal.id, since: terminal.offset })
back.resize(100, 30)
await back.write('echo "found $MARK"\n')
await waitFor(back, 'found again')
process.stdout.write('found again\n')

await back.write('exit\n')
process.stdout.write(`exit code ${(await back.exit).exitCode}\n`)
