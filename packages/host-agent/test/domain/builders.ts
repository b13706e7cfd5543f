/** Values of the domain for tests. */
import { LIMITS, type RuntimeSpec, type StartTicket } from '@sandglass/contract'
import type { HostPosition } from '../../src/domain/decide-ticket.ts'
import { recordEnding, recordGone, recordRunning, recordStart, type SandboxPhase, type SandboxRecord } from '../../src/domain/sandbox-record.ts'

export const SANDBOX = 'sbloaaaaaaaaaaaaaaaa'
export const HOST = 'hoaaaaaaaaaaaaaaaa'
export const EPOCH = 3
export const TERM = 100

export const position: HostPosition = { hostId: HOST, epoch: EPOCH, lastSeq: TERM + LIMITS.ticketTerms }

export const spec: RuntimeSpec = {
  sandbox: SANDBOX,
  driver: 'fake',
  template: { name: 'base', digest: `sha256:${'a'.repeat(64)}` },
  resources: { vcpu: 1, memory_mb: 512, disk_gb: 2 },
  network: { mode: 'none' },
  hostname: 'box',
  env: { TOKEN: 'a secret value' },
  pids_max: 64,
}

export function ticketOf(fields: Partial<StartTicket> = {}): StartTicket {
  return {
    kind: 'start',
    sandbox: SANDBOX,
    generation: 5,
    host: HOST,
    epoch: EPOCH,
    term: TERM,
    spec_sha256: 'b'.repeat(64),
    amounts: spec.resources,
    pool: null,
    ...fields,
  }
}

/** A record whose runtime is of generation 5, in a phase. */
export function recordIn(phase: SandboxPhase): SandboxRecord {
  const launching = recordStart(ticketOf(), spec, null)
  const running = recordRunning(launching, { guest_boot_id: '0'.repeat(32), evidence: {}, timings_ms: {} })
  const ending = recordEnding(running, { reason: 'runtime_exited', detail: null })
  return { launching, running, ending, gone: recordGone(ending) }[phase]
}
