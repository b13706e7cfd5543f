/** A sandbox that is watched while it works: what the roles and the guest agent take of memory. */
import type { Sandbox } from '@sandglass/sdk'
import { sharedInstallation } from './file-installation.ts'
import { type Given, made } from './fixture.ts'
import { type Growth, growthDuring } from './memory-watch.ts'
import { startRaw } from './subject/raw-http.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Measured = {
  readonly sandbox: Sandboxed
  readonly growthDuring: (action: () => Promise<void>) => Promise<Growth>
}

export type Crowded = Measured & {
  /** Names of a directory, in order, page by page. */
  readonly pages: (path: string) => AsyncIterable<readonly string[]>
  /** Names of a directory as one stream. */
  readonly names: (path: string) => AsyncIterable<string>
  readonly archive: (path: string) => AsyncIterable<Uint8Array>
  /** Paths of what is created, once `ready` was called. */
  readonly created: (path: string, ready: () => void, signal: AbortSignal) => AsyncIterable<string>
}

const PAGE_NAMES = 1_000
const STREAM_LIMIT_MS = 120_000

async function sandboxOf(resources?: {
  readonly vcpu: number
  readonly memoryMb: number
  readonly diskGb: number
}): Promise<{ sandbox: Sandbox; value: Measured; key: string }> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation, resources === undefined ? {} : { resources })
  const inside = sdkSandbox(sandbox, installation.operatorKey)
  return {
    sandbox,
    key: installation.operatorKey,
    value: { sandbox: inside, growthDuring: (action) => growthDuring(installation.home, inside, action) },
  }
}

/** @param diskGb of its root */
export async function measured(diskGb?: number): Promise<Given<Measured>> {
  const { sandbox, value } = await sandboxOf(diskGb === undefined ? undefined : { vcpu: 1, memoryMb: 1_024, diskGb })
  return { value, dispose: () => sandbox.delete() }
}

async function* pages(sandbox: Sandbox, path: string): AsyncGenerator<readonly string[]> {
  let page: string[] = []
  for await (const { name } of sandbox.files.list(path, { pageSize: PAGE_NAMES })) {
    page.push(name)
    if (page.length < PAGE_NAMES) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

async function* names(sandbox: Sandbox, key: string, path: string): AsyncGenerator<string> {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' }
  const target = `/v1/sandboxes/${sandbox.id}/files/list?path=${encodeURIComponent(path)}`
  const answer = await startRaw(sandbox.resource.gateway_url, { method: 'GET', path: target, headers, timeoutMs: STREAM_LIMIT_MS })
  if (answer.statusCode !== 200) throw new Error(`the list answered ${answer.statusCode}`)
  let rest = ''
  for await (const chunk of answer) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield nameOf(JSON.parse(line))
  }
  if (rest !== '') throw new Error('the list ended within a line')
}

function nameOf(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string') return value.name
  throw new Error(`a line without a name: ${JSON.stringify(value)}`)
}

export async function crowded(): Promise<Given<Crowded>> {
  const { sandbox, value, key } = await sandboxOf({ vcpu: 1, memoryMb: 2_048, diskGb: 4 })
  return {
    value: {
      ...value,
      pages: (path) => pages(sandbox, path),
      names: (path) => names(sandbox, key, path),
      async *archive(path) {
        yield* await sandbox.files.readArchive(path)
      },
      async *created(path, ready, signal) {
        for await (const event of sandbox.files.watch(path, { onReady: ready, signal })) if (event.type === 'created') yield event.path ?? ''
      },
    },
    dispose: () => sandbox.delete(),
  }
}
