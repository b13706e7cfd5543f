/** The real process, killed with SIGKILL at named points and started again: the same key gives the same sandbox, and nothing is held twice or lost. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Sandbox } from '@sandglass/contract'
import { freePort, SimulatedHost, TEST_AUTHORITY, until } from '@sandglass/testkit'
import pg from 'pg'
import type { CrashPoint } from '../src/index.ts'
import { TEMPLATE, usePostgres, writeManifest } from './harness.ts'

const postgres = usePostgres()
const main = join(import.meta.dirname, '../src/main.ts')
const key = `sgk_${randomBytes(32).toString('base64url')}`
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const folder = mkdtempSync(join(tmpdir(), 'sandglass-crash-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const write = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}
writeManifest(folder, TEMPLATE)
const FILES = {
  SANDGLASS_TICKET_KEY_FILE: write('ticket.pem', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  SANDGLASS_CA_KEY_FILE: write('ca.pem', TEST_AUTHORITY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  SANDGLASS_BOOTSTRAP_KEYS_FILE: write('keys', JSON.stringify([{ name: 'tenant', role: 'member', sha256: sha256(key) }])),
  SANDGLASS_TEMPLATES_DIR: folder,
}

/** A loaded machine starts a process slowly. */
const START_BOUND_MS = 180_000

function startProcess(databaseUrl: string, ports: { api: number; internal: number }, crashAt?: string): ChildProcess {
  const env = {
    ...FILES,
    SANDGLASS_DATABASE_URL: databaseUrl,
    SANDGLASS_API_PORT: String(ports.api),
    SANDGLASS_INTERNAL_PORT: String(ports.internal),
    SANDGLASS_GATEWAY_URL: 'http://127.0.0.1:1',
  }
  return spawn(process.execPath, [main], { env: { ...env, ...(crashAt === undefined ? {} : { SANDGLASS_CRASH_AT: crashAt }) }, stdio: 'ignore' })
}

const isUp = async (url: string): Promise<boolean> => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200
const ended = async (child: ChildProcess): Promise<NodeJS.Signals | number | null> => {
  if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve))
  return child.signalCode ?? child.exitCode
}

async function request(url: string, method: string, path: string, body?: object, idempotencyKey?: string) {
  const headers = { authorization: `Bearer ${key}`, prefer: 'wait=10', ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }) }
  const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { ...headers, 'content-type': 'application/json' } }
  const response = await fetch(`${url}${path}`, { method, headers, ...json, signal: AbortSignal.timeout(20_000) }).catch(() => undefined)
  return response === undefined ? undefined : { status: response.status, text: await response.text() }
}

/** Repeats as a client would: the connection broke, or the service was away. */
const insist = async (url: string, method: string, path: string, body?: object, idempotencyKey?: string) =>
  await until(
    `${method} ${path} to be answered`,
    async () => {
      const answer = await request(url, method, path, body, idempotencyKey)
      return answer !== undefined && answer.status < 500 ? answer : undefined
    },
    START_BOUND_MS,
  )

/** One for each decision; the failure suite passes all of them on a whole installation. */
const POINTS: readonly CrashPoint[] = ['create.committed', 'place.committed', 'ready.open', 'delete.committed', 'ended.open', 'ended.committed']

for (const point of POINTS) {
  test(`killed at ${point}`, async () => {
    const databaseUrl = await postgres.current.createDatabase()
    const ports = { api: await freePort(), internal: await freePort() }
    const url = `http://127.0.0.1:${ports.api}`
    let child = startProcess(databaseUrl, ports, point)
    const host = new SimulatedHost({ url: `https://127.0.0.1:${ports.internal}`, templates: [TEMPLATE], persistent: true })
    let up = false
    try {
      await until('the process to be up', () => isUp(url), START_BOUND_MS)
      up = true
      await host.join()
      const lives = (async () => {
        assert.equal(await ended(child), 'SIGKILL')
        child = startProcess(databaseUrl, ports)
      })()
      const created = await insist(url, 'POST', '/v1/sandboxes', { isolation: 'fake', name: 'one' }, 'k')
      const sandbox: Sandbox = JSON.parse(created.text)
      await until('ready', async () => JSON.parse((await request(url, 'GET', `/v1/sandboxes/${sandbox.id}`))?.text ?? '{}').status === 'ready', START_BOUND_MS)
      assert.equal(host.running.get(sandbox.id), 1)
      await insist(url, 'DELETE', `/v1/sandboxes/${sandbox.id}`)
      await lives
      await until('the process to be up again', () => isUp(url), START_BOUND_MS)
      await until(
        'the end',
        async () => JSON.parse((await request(url, 'GET', `/v1/sandboxes/${sandbox.id}`))?.text ?? '{}').status === 'terminated',
        START_BOUND_MS,
      )
      const client = new pg.Client({ connectionString: databaseUrl })
      await client.connect()
      const { rows } = await client.query(
        `SELECT (SELECT count(*)::int FROM sandglass.sandboxes) AS sandboxes, (SELECT sum(memory_mb_reserved)::int FROM sandglass.host_capacity) AS reserved,
          (SELECT running_sandboxes_used FROM sandglass.quotas) AS quota, (SELECT count(*)::int FROM sandglass.assignments) AS assignments,
          (SELECT count(*)::int FROM sandglass.usage_intervals WHERE closed_at IS NULL) AS usage`,
      )
      await client.end()
      assert.deepEqual(rows, [{ sandboxes: 1, reserved: 0, quota: 0, assignments: 1, usage: 0 }])
      assert.equal(host.running.size, 0)
    } finally {
      await host.leave()
      child.kill('SIGTERM')
      const end = await ended(child)
      if (up) assert.equal(end, 0)
    }
  })
}
