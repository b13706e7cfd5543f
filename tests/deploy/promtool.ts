/** Prometheus' own linter. `./sandglass test` puts it into the cache (tools/provision/promtool.sh). */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

const TIMEOUT_MS = 60_000
const PROMTOOL = join(process.env['SANDGLASS_CACHE'] || '/var/cache/sandglass', 'bin/promtool')

/** @returns what it had to say against its input; empty when it is content */
export function promtool(args: readonly string[], stdin = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(PROMTOOL, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: TIMEOUT_MS, killSignal: 'SIGKILL' })
    const said: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk))
    child.stdin.on('error', () => undefined)
    child.stdin.end(stdin)
    child.once('error', (cause) => reject(new Error(`${PROMTOOL} does not run. Type: ./sandglass test deploy`, { cause })))
    child.once('close', (code) => resolve(code === 0 ? '' : `${Buffer.concat(said).toString('utf8')}(exit ${code})`))
  })
}
