/** One control plane as a process of its own over a database, and its simulated hosts in a thread of their own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Sandglass } from '@sandglass/sdk'
import { freePort, until } from '@sandglass/testkit'
import type { HostsOrder } from './hosts-worker.ts'

const MAIN = join(import.meta.dirname, '../../packages/control-plane/src/main.ts')
const STARTED_MS = 60_000
const ENDED_MS = 20_000

export const TEMPLATE = { name: 'base', digest: `sha256:${'a'.repeat(64)}` }

const newSigningKey = (): string => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

export class ControlPlaneProcess implements AsyncDisposable {
  readonly client: Sandglass
  readonly #child: ChildProcess
  readonly #hosts: Pick<HostsOrder, 'url' | 'authorityKey'>
  readonly #workers: Worker[] = []

  private constructor(child: ChildProcess, url: string, key: string, hosts: Pick<HostsOrder, 'url' | 'authorityKey'>) {
    this.#child = child
    this.#hosts = hosts
    this.client = new Sandglass({ url, apiKey: key })
  }

  /** @param folder where its secrets lie */
  static async start(databaseUrl: string, folder: string): Promise<ControlPlaneProcess> {
    mkdirSync(join(folder, 'templates'), { recursive: true })
    const key = `sgk_${randomBytes(32).toString('base64url')}`
    const authorityKey = newSigningKey()
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const digest12 = TEMPLATE.digest.slice('sha256:'.length).slice(0, 12)
    const manifest = { ...TEMPLATE, file: `base-${digest12}.erofs`, size_bytes: 1_000, packages: [], created_at: '2026-01-01T00:00:00.000Z' }
    file('templates/base.json', JSON.stringify(manifest))
    const port = await freePort()
    const internalPort = await freePort()
    const child = spawn(process.execPath, [MAIN], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        SANDGLASS_API_PORT: String(port),
        SANDGLASS_DATABASE_URL: databaseUrl,
        SANDGLASS_GATEWAY_URL: 'http://127.0.0.1:1',
        SANDGLASS_TEMPLATES_DIR: join(folder, 'templates'),
        SANDGLASS_INTERNAL_PORT: String(internalPort),
        SANDGLASS_TICKET_KEY_FILE: file('ticket.pem', newSigningKey()),
        SANDGLASS_CA_KEY_FILE: file('authority.pem', authorityKey),
        SANDGLASS_BOOTSTRAP_KEYS_FILE: file('keys.json', JSON.stringify([{ name: 'bench', role: 'operator', sha256: sha256(key) }])),
        SANDGLASS_POOL_FLOOR: '0',
        SANDGLASS_LOG_LEVEL: 'warn',
        SANDGLASS_RATE_KEY_REQUESTS: '1000000000',
        SANDGLASS_RATE_TENANT_REQUESTS: '1000000000',
      },
    })
    const url = `http://127.0.0.1:${port}`
    const process_ = new ControlPlaneProcess(child, url, key, { url: `https://127.0.0.1:${internalPort}`, authorityKey })
    await until('the control plane to be up', () => answers(url), STARTED_MS)
    return process_
  }

  /** Joined, watching, and taking every start as ready. */
  async simulateHosts(count: number, capacity: HostsOrder['capacity']): Promise<void> {
    const order: HostsOrder = { ...this.#hosts, count, capacity, template: TEMPLATE }
    const worker = new Worker(new URL('./hosts-worker.ts', import.meta.url), { workerData: order })
    this.#workers.push(worker)
    await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) await worker.terminate()
    if (this.#child.exitCode !== null) return
    const ended = new Promise<void>((resolve) => void this.#child.once('exit', () => resolve()))
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), ENDED_MS)
    await ended
    clearTimeout(timer)
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok
  } catch {
    return false
  }
}
