/** The records of sandboxes on this host's disk: one file each. */
import { join } from 'node:path'
import { closed, ID_PATTERNS, nullable, oneOf, PoolPositionSchema, parserOf, parseSandboxId, StartPathSchema } from '@sandglass/contract'
import Type, { type Static } from 'typebox'
import { parseRuntimeName, runtimeName } from '../domain/runtime-name.ts'
import type { SandboxRecord } from '../domain/sandbox-record.ts'
import { listWhole, removeDurably } from './atomic-file.ts'
import { readJson, writeJson } from './json-file.ts'

const position = Type.Integer({ minimum: 0 })
const SandboxRecordSchema = closed({
  format: Type.Literal(1),
  sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
  high: position,
  term: nullable(position),
  phase: oneOf(['launching', 'running', 'ending', 'gone']),
  runtime: nullable(
    closed({
      /** Absent in records of an agent that knew no pools, and so is `path`. */
      name: Type.Optional(Type.String()),
      path: Type.Optional(StartPathSchema),
      generation: position,
      epoch: position,
      driver: oneOf(['gvisor', 'fake']),
      template_digest: Type.String(),
      vcpu: Type.Number(),
      memory_mb: position,
      disk_gb: position,
      pids_max: position,
      guest_boot_id: nullable(Type.String()),
      evidence: Type.Record(Type.String(), Type.String()),
      timings_ms: Type.Record(Type.String(), Type.Number()),
    }),
  ),
  pool: Type.Optional(nullable(closed({ epoch: position, position: PoolPositionSchema }))),
  ended: nullable(closed({ reason: oneOf(['ordered', 'start_failed', 'runtime_exited', 'recovered']), detail: nullable(Type.String()) })),
  settled: Type.Boolean(),
})
const parser = parserOf(SandboxRecordSchema)

/** Undefined when it names a runtime that could not be one. */
function recordOf({ runtime, pool = null, ...record }: Static<typeof SandboxRecordSchema>): SandboxRecord | undefined {
  if (runtime === null) return { ...record, runtime, pool }
  const name = runtime.name === undefined ? runtimeName({ sandbox: record.sandbox, generation: runtime.generation }) : parseRuntimeName(runtime.name)?.name
  return name === undefined ? undefined : { ...record, runtime: { ...runtime, name, path: runtime.path ?? 'cold' }, pool }
}

export type LoadedRecords = {
  readonly records: readonly SandboxRecord[]
  /** Sandboxes whose file cannot be read: nothing may start for them until an end order replaces it. */
  readonly damaged: readonly string[]
}

export type SandboxRecords = {
  /** Durable when it resolves. */
  write(record: SandboxRecord): Promise<void>
  forget(sandbox: string): Promise<void>
  load(): Promise<LoadedRecords>
}

export function sandboxRecords(directory: string): SandboxRecords {
  const path = (sandbox: string): string => join(directory, `${sandbox}.json`)
  return {
    write: (record) => writeJson(path(record.sandbox), record),
    forget: (sandbox) => removeDurably(path(sandbox)),
    async load() {
      const records: SandboxRecord[] = []
      const damaged: string[] = []
      for (const name of await listWhole(directory)) {
        const sandbox = parseSandboxId(name.replace(/\.json$/, ''))
        if (sandbox === undefined) continue
        try {
          const found = await readJson(path(sandbox), parser)
          const record = found === undefined ? undefined : recordOf(found)
          if (record?.sandbox === sandbox) records.push(record)
          else damaged.push(sandbox)
        } catch {
          damaged.push(sandbox)
        }
      }
      return { records, damaged }
    },
  }
}
