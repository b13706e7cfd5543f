/** Keeps a Python session across programs: whoever says the same names finds the same sandbox and the same interpreter. Prints `42`. */
import { Sandbox, type Terminal } from '@sandglass/sdk'

const NAME = `session-${process.pid}`

/** What one program does: find or create both, run a line, leave. The interpreter stays. */
async function run(line: string, awaited: string): Promise<void> {
  const sandbox = await Sandbox.getOrCreate({ name: NAME, ttlSeconds: 600 })
  // The process key makes it one interpreter, however often it is asked for.
  const python = await sandbox.terminal({ processKey: 'python', program: { argv: ['python3', '-q'] } })
  await python.write(`${line}\n`)
  await waitFor(python, awaited)
  python.detach()
  sandbox.detach()
}

async function waitFor(terminal: Terminal, text: string): Promise<void> {
  let seen = ''
  for (let bytes = await terminal.output.read(); bytes !== undefined; bytes = await terminal.output.read()) {
    seen += Buffer.from(bytes).toString()
    if (seen.includes(text)) return
  }
  throw new Error(`the session ended before it printed ${text}`)
}

await run('answer = 6 * 7; print("re" + "membered")', 'remembered')
await run('print("answer is", answer)', 'answer is 42')
process.stdout.write('42\n')

const sandbox = await Sandbox.get(NAME)
await sandbox.delete()
