/** A tool for an agent: Python and shell that outlive the agent's own program. Prints `answer = 42`, `interrupted after 500 ms` and `still 42`. */
import { randomUUID } from 'node:crypto'
import { type OutputStream, Sandbox, SandglassError, type Spawned } from '@sandglass/sdk'

/**
 * Each runs what it is sent, one line of base64 at a time, keeps its variables, and then prints the nonce that came with it on both streams, with
 * `+` or `-`: so that an answer is known to be whole, whatever the code printed. SIGINT ends the code and not the session.
 */
const LANGUAGES = {
  python: ['python3', '-uc', pythonLoop()],
  shell: [
    'bash',
    '-c',
    'trap : INT; while read -r nonce code; do eval "$(base64 -d <<<"$code")" </dev/null && r=+ || r=-; printf %s "$nonce$r" >&2; printf %s "$nonce$r"; done',
  ],
} as const

function pythonLoop(): string {
  return `
import base64, os, sys, traceback
names = {'__name__': '__main__'}
requests = os.fdopen(os.dup(0))
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
def run(code):
    try:
        exec(compile(base64.b64decode(code), '<agent>', 'exec'), names)
        return '+'
    except BaseException:
        traceback.print_exc()
        return '-'
while True:
    try:
        line = requests.readline()
        if not line: break
        nonce, code = line.split()
        mark = nonce + run(code)
        for stream in (sys.stderr, sys.stdout): print(mark, end='', file=stream, flush=True)
    except KeyboardInterrupt: pass
`
}

type Language = keyof typeof LANGUAGES
type Answer = { readonly ok: boolean; readonly timedOut: boolean }
type OnOutput = (text: string, stream: 'stdout' | 'stderr') => void

const GRACE_MS = 5_000

class AgentTool {
  readonly #sandbox: Sandbox
  readonly #sessions = new Map<Language, Spawned>()

  private constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /** The same sandbox for everybody who says this name. One that was found keeps its deadline, so it is moved. */
  static async open(name: string): Promise<AgentTool> {
    const sandbox = await Sandbox.getOrCreate({ name, ttlSeconds: 600, replaceFailed: true })
    return new AgentTool(sandbox.wasCreated ? sandbox : await sandbox.extend(600))
  }

  /** One call at a time for each language. */
  async run(language: Language, code: string, timeoutMs: number, onOutput: OnOutput): Promise<Answer> {
    const session = await this.#session(language)
    const nonce = randomUUID()
    let timedOut = false
    const interrupt = setTimeout(() => {
      timedOut = true
      session.signal('INT').catch(() => undefined)
    }, timeoutMs)
    // Code that ignores an interrupt takes its session with it.
    const kill = setTimeout(() => void session.kill().catch(() => undefined), timeoutMs + GRACE_MS)
    try {
      await session.stdin.write(`${nonce} ${Buffer.from(code).toString('base64')}\n`)
      const [ok] = await Promise.all([
        readUntil(session.stdout, nonce, (text) => onOutput(text, 'stdout')),
        readUntil(session.stderr, nonce, (text) => onOutput(text, 'stderr')),
      ])
      if (ok === undefined) this.#sessions.delete(language)
      return { ok: ok === true, timedOut }
    } finally {
      clearTimeout(interrupt)
      clearTimeout(kill)
    }
  }

  /** Leaves everything running; `open` with the same name finds it again. */
  leave(): void {
    for (const session of this.#sessions.values()) session.detach()
  }

  async #session(language: Language): Promise<Spawned> {
    const known = this.#sessions.get(language)
    if (known !== undefined) return known
    // A key names one process for good, also when it has ended: then the next number is taken.
    for (let number = 1; ; number += 1) {
      const session = await this.#join(`${language}-${number}`, language)
      if (session === undefined) continue
      this.#sessions.set(language, session)
      return session
    }
  }

  /** Behind what it has printed already, which asking for the key alone would print once more. Undefined: it has ended. */
  async #join(key: string, language: Language): Promise<Spawned | undefined> {
    try {
      const { id, running, resource } = await this.#sandbox.process(`key:${key}`)
      if (!running) return undefined
      return await this.#sandbox.attach(id, { stdin: true, sinceStdout: resource.stdout.end, sinceStderr: resource.stderr.end })
    } catch (error) {
      if (!(error instanceof SandglassError) || error.code !== 'process_not_found') throw error
      return this.#sandbox.spawn(LANGUAGES[language], { stdin: true, processKey: key })
    }
  }
}

/** Hands over text as it comes, up to the nonce. @returns what stands behind the nonce; undefined when the stream ended before it */
async function readUntil(output: OutputStream, nonce: string, onText: (text: string) => void): Promise<boolean | undefined> {
  const decoder = new TextDecoder()
  let held = ''
  for (let bytes = await output.read(); bytes !== undefined; bytes = await output.read()) {
    held += decoder.decode(bytes, { stream: true })
    const at = held.indexOf(nonce)
    const isWhole = at >= 0 && held.length > at + nonce.length
    // The nonce may come in two pieces.
    const sure = at >= 0 ? at : Math.max(0, held.length - nonce.length)
    if (sure > 0) onText(held.slice(0, sure))
    if (isWhole) return held[at + nonce.length] === '+'
    held = held.slice(sure)
  }
  return undefined
}

const name = `agent-${process.pid}`
const print: OnOutput = (text) => process.stdout.write(text)

const first = await AgentTool.open(name)
await first.run('python', 'answer = 6 * 7\nprint("answer =", answer)', 10_000, print)
const endless = await first.run('shell', 'cd /tmp; sleep 1000', 500, print)
if (endless.timedOut) process.stdout.write('interrupted after 500 ms\n')
first.leave()

// Another program, another day.
const second = await AgentTool.open(name)
await second.run('python', 'print("still", answer)', 10_000, print)
await second.run('shell', 'pwd', 10_000, print)
second.leave()
await (await Sandbox.get(name)).delete()
