/** Real subjects for the cases. */

import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parserOf, SandboxSchema } from '@sandglass/contract'
import { type CreateSandboxOptions, Sandbox, Sandglass } from '@sandglass/sdk'
import { BreakableCache, FAILURES, type Failure } from './breakable-cache.ts'
import { afterTests, ownInstallation, sharedInstallation } from './file-installation.ts'
import type { Installation } from './installation.ts'
import { LossyProxy } from './lossy-proxy.ts'
import { sentriesOf, servingSentries } from './sentries.ts'
import { text } from './subject/bytes.ts'
import type { CreateOptions, Platform, Seen } from './subject/platform.ts'
import { type RawFiles, rawFiles } from './subject/raw-files.ts'
import { rawHttp } from './subject/raw-http.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { getAgain, sdkPlatform } from './subject/sdk-platform.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Given<T> = { readonly value: T; readonly dispose: () => Promise<void> }

/** Room for a gigabyte of files and for commands in parallel. */
const RESOURCES = { vcpu: 1, memoryMb: 1_024, diskGb: 4 }

export const uniqueName = (): string => `t${randomBytes(5).toString('hex')}`

/** A sandbox of the size that cases want. */
export async function made(installation: Installation, options: CreateSandboxOptions = {}): Promise<Sandbox> {
  return Sandbox.create({ client: installation.client(), resources: RESOURCES, ttlSeconds: 1_800, ...options })
}

/** A sandbox of its own. */
export async function sandboxed(): Promise<Given<Sandboxed>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  return { value: sdkSandbox(sandbox, installation.operatorKey), dispose: () => sandbox.delete() }
}

/** A sandbox, its files over the SDK, and the same files over bare HTTP. */
export async function sandboxedWithHttp(): Promise<Given<{ sandbox: Sandboxed; ways: Record<'sdk' | 'http', RawFiles> }>> {
  const installation = await sharedInstallation()
  const created = await made(installation)
  const sandbox = sdkSandbox(created, installation.operatorKey)
  const http = rawFiles({ baseUrl: created.resource.gateway_url, key: installation.operatorKey, sandboxId: created.id })
  return { value: { sandbox, ways: { sdk: sandbox.files, http } }, dispose: () => created.delete() }
}

/** A sandbox that the check itself ends. */
export async function disposableSandbox(): Promise<Given<{ sandbox: Sandboxed; end: () => Promise<void> }>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  return { value: { sandbox: sdkSandbox(sandbox, installation.operatorKey), end: () => sandbox.delete({ wait: false }) }, dispose: () => sandbox.delete() }
}

export type Entered = {
  readonly platform: Platform
  readonly name: string
  /** Finds or creates a sandbox of that name, with a life of its own in mind. */
  readonly again: (name: string, ttlSeconds: number) => Promise<Seen>
}

async function removeNamed(platform: Platform, name: string): Promise<void> {
  for (const sandbox of await platform.list()) if (sandbox.name?.startsWith(name) === true) await platform.remove(sandbox.id)
}

/** The platform, and a name for what the check creates. */
export async function enteredPlatform(): Promise<Given<Entered>> {
  const installation = await sharedInstallation()
  const client = installation.client()
  const platform = sdkPlatform(client, installation.operatorKey)
  const name = uniqueName()
  return { value: { platform, name, again: (known, ttlSeconds) => getAgain(client, known, ttlSeconds) }, dispose: () => removeNamed(platform, name) }
}

export type LossyPlatform = {
  readonly platform: Platform
  readonly name: string
  /** Loses the next answers while the action runs; `through` sends each request once. */
  readonly loseAnswers: <T>(count: number, action: (through: Pick<Platform, 'create'>) => Promise<T>) => Promise<T>
  /** A create by a client behind the lossy connection, with the client's own retries. */
  readonly clientCreate: (name: string) => Promise<Seen>
}

const sandboxes = parserOf(SandboxSchema)

/** One request, no retry. */
async function createOnce(baseUrl: string, key: string, { name, idempotencyKey }: CreateOptions): Promise<Seen> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  }
  const { body } = await rawHttp(baseUrl, { method: 'POST', path: '/v1/sandboxes', headers, body: JSON.stringify({ name }) })
  const sandbox = sandboxes.parse(JSON.parse(text(body)))
  return { ...sandbox, expiresAtMs: Date.parse(sandbox.expires_at) }
}

export async function lossyPlatform(): Promise<Given<LossyPlatform>> {
  const installation = await sharedInstallation()
  const platform = sdkPlatform(installation.client(), installation.operatorKey)
  const name = uniqueName()
  const proxy = await LossyProxy.start(installation.apiUrl)
  const behind = sdkPlatform(new Sandglass({ url: proxy.url, apiKey: installation.operatorKey }), installation.operatorKey)
  return {
    value: {
      platform,
      name,
      async loseAnswers(count, action) {
        proxy.lose(count)
        return action({ create: (options) => createOnce(proxy.url, installation.operatorKey, options) })
      },
      clientCreate: (asked) => behind.create({ name: asked }),
    },
    async dispose() {
      await removeNamed(platform, name)
      await proxy[Symbol.asyncDispose]()
    },
  }
}

export type Breakable = {
  readonly platform: Platform
  /** Pids of the runtimes of the installation. */
  readonly runtimes: () => Promise<readonly number[]>
  readonly killRuntime: (sandboxId: string) => void
  readonly failures: readonly Failure[]
  readonly failing: <T>(failure: Failure, action: () => Promise<T>) => Promise<T>
}

function breakableCache(): BreakableCache {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-cache-'))
  // Roles run as users of their own and must reach it.
  chmodSync(folder, 0o755)
  afterTests(() => rmSync(folder, { recursive: true, force: true }))
  return new BreakableCache(join(folder, 'cache'), process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass')
}

let brokenCache: BreakableCache | undefined

/** An installation of the file's own, parts of which can be made to fail. A start out of a pool needs none of them, so it keeps none. */
export async function breakable(): Promise<Given<Breakable>> {
  brokenCache ??= breakableCache()
  const cache = brokenCache
  const installation = await ownInstallation(() => ({ SANDGLASS_CACHE: cache.path, SANDGLASS_POOL_FLOOR: '0' }))
  const platform = sdkPlatform(installation.client(), installation.operatorKey)
  return {
    value: {
      platform,
      runtimes: async () => servingSentries(installation.home).map(({ pid }) => pid),
      killRuntime(sandboxId) {
        for (const { pid } of sentriesOf(installation.home, sandboxId)) process.kill(pid, 'SIGKILL')
      },
      failures: FAILURES,
      failing: (failure, action) => cache.failing(failure, installation.home, action),
    },
    async dispose() {
      for (const { id } of await platform.list()) await platform.remove(id)
    },
  }
}

export type Restartable = { readonly platform: Platform; readonly name: string; readonly restart: () => Promise<void> }

/** An installation of the file's own that can be stopped and started; its sandboxes stay. */
export async function restartable(): Promise<Given<Restartable>> {
  const installation = await ownInstallation()
  const platform = sdkPlatform(installation.client(), installation.operatorKey)
  return {
    value: {
      platform,
      name: uniqueName(),
      async restart() {
        await installation.ok(['down'])
        await installation.ok(['up', '--detach'])
      },
    },
    async dispose() {
      for (const { id } of await platform.list()) await platform.remove(id)
    },
  }
}

export type Mortal = {
  readonly sandbox: Sandboxed
  /** Kills the runtime from outside, and the guest agent in it. */
  readonly killGuest: () => void
  readonly status: () => Promise<string>
}

/** A sandbox whose guest can be killed behind everyone's back. */
export async function mortal(): Promise<Given<Mortal>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  return {
    value: {
      sandbox: sdkSandbox(sandbox, installation.operatorKey),
      killGuest() {
        for (const { pid } of sentriesOf(installation.home, sandbox.id)) process.kill(pid, 'SIGKILL')
      },
      status: async () => (await sandbox.refresh()).status,
    },
    dispose: () => sandbox.delete(),
  }
}
