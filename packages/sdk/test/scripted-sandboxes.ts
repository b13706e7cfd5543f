/** The part of a control plane that the SDK's create needs: keys, operations, and a list of what there is. */
import type { Process } from '@sandglass/contract/process'
import type { Sandbox as WireSandbox } from '@sandglass/contract/sandbox'
import { problem, type ScriptedServer } from './scripted-server.ts'

export function wireSandbox(server: ScriptedServer, change: Partial<WireSandbox> = {}): WireSandbox {
  return {
    id: 'sbl1aaaaaaaaaaaaaaaa',
    name: null,
    status: 'ready',
    status_reason: null,
    unschedulable_reason: null,
    desired: 'running',
    writable_layer: 'present',
    restart_policy: 'never',
    restarts: 0,
    generation: 1,
    template: { name: 'base', digest: `sha256:${'0'.repeat(64)}` },
    resources: { vcpu: 0.5, memory_mb: 512, disk_gb: 2 },
    isolation: { driver: 'gvisor', evidence: { kernel: '4.19.0-gvisor' } },
    network: { mode: 'none' },
    env_names: [],
    metadata: {},
    region: 'l1',
    host_id: 'hoaaaaaaaaaaaaaaaa',
    gateway_url: server.url,
    gateway_urls: [server.url],
    ttl_seconds: 3600,
    idle_timeout_seconds: null,
    on_timeout: 'delete',
    created_at: '2026-01-01T00:00:00Z',
    ready_at: '2026-01-01T00:00:01Z',
    expires_at: '2026-01-01T01:00:00Z',
    idle_at: null,
    ended_at: null,
    start_path: null,
    start_timings_ms: null,
    operation_id: 'opaaaaaaaaaaaaaaaa',
    ...change,
  }
}

export function wireProcess(change: Partial<Process> = {}): Process {
  return {
    id: 'praaaaaaaaaaaaaaaa',
    key: null,
    argv: ['true'],
    cwd: '/',
    user: 'root',
    tty: false,
    state: 'running',
    pid: 7,
    exit_code: null,
    signal: null,
    timed_out: false,
    started_at_ms: 0,
    ended_at_ms: null,
    duration_ms: null,
    stdout: { start: 0, end: 0 },
    stderr: { start: 0, end: 0 },
    stdin: { accepted: 0, open: false },
    output_open: false,
    truncated: false,
    cpu_ms: 0,
    memory_bytes: 0,
    cols: null,
    rows: null,
    ...change,
  }
}

export class ScriptedSandboxes {
  readonly byKey = new Map<string, WireSandbox>()
  readonly deleted = new Set<string>()
  /** Answers that are lost after the sandbox was made. */
  dropAfterCommit = 0
  status: WireSandbox['status'] = 'ready'
  readonly #server: ScriptedServer

  constructor(server: ScriptedServer) {
    this.#server = server
    server.on('POST', /^\/v1\/sandboxes$/, ({ headers }) => this.#create(String(headers['idempotency-key'])))
    server.on('GET', /^\/v1\/sandboxes\/\w+$/, ({ path }) => {
      const found = this.all.find((sandbox) => path.endsWith(sandbox.id))
      return found === undefined ? problem('sandbox_not_found') : { status: 200, json: { ...found, status: this.status } }
    })
    server.on('DELETE', /^\/v1\/sandboxes\/\w+$/, ({ path }) => {
      this.deleted.add(path.split('/').at(-1) ?? '')
      return { status: 204 }
    })
  }

  get all(): WireSandbox[] {
    return [...this.byKey.values()]
  }

  #create(key: string): ReturnType<typeof problem> | 'drop' {
    const made = this.byKey.get(key) ?? wireSandbox(this.#server, { id: `sbl1aaaaaaaaaaaaaaa${'abcdefgh'.charAt(this.byKey.size)}`, status: this.status })
    this.byKey.set(key, made)
    if (this.dropAfterCommit > 0) {
      this.dropAfterCommit -= 1
      return 'drop'
    }
    return { status: made.status === 'ready' ? 201 : 202, json: made }
  }
}
