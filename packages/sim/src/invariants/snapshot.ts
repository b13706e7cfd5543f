/** What the tables say at one moment between transactions. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parserOf } from '@sandglass/contract'
import Type, { type Static } from 'typebox'
import type { SimulatedPostgres } from '../store/simulated-postgres.ts'

const count = Type.Number()
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()])

const SnapshotSchema = Type.Object({
  sandboxes: Type.Array(
    Type.Object({
      id: Type.String(),
      desired: Type.String(),
      observed: Type.String(),
      generation: count,
      quota_held: Type.Boolean(),
      vcpu_milli: count,
      memory_mb: count,
      disk_gb: count,
      intent: nullable(Type.String()),
      operation_id: Type.String(),
      reason: nullable(Type.String()),
      waits: nullable(Type.String()),
      expired: Type.Boolean(),
    }),
  ),
  assignments: Type.Array(
    Type.Object({
      id: Type.String(),
      sandbox: Type.String(),
      generation: count,
      host: Type.String(),
      epoch: count,
      vcpu_milli: count,
      memory_mb: count,
      disk_gb: count,
      released_by: nullable(Type.String()),
      released_ms: nullable(count),
    }),
  ),
  hosts: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      epoch: count,
      seq: count,
      held: Type.Boolean(),
      cordoned: Type.Boolean(),
      removed: Type.Boolean(),
      vcpu_milli_capacity: count,
      vcpu_milli_reserved: count,
      memory_mb_capacity: count,
      memory_mb_reserved: count,
      disk_gb_capacity: count,
      disk_gb_reserved: count,
    }),
  ),
  pools: Type.Array(
    Type.Object({
      host: Type.String(),
      key: Type.String(),
      epoch: count,
      target: count,
      held: count,
      version: count,
      acked: count,
      memory_mb: count,
      disk_gb: count,
    }),
  ),
  quotas: Type.Array(Type.Object({ running: count, vcpu_milli: count, memory_mb: count, disk_gb: count, kept: count, running_limit: count })),
  usage: Type.Array(Type.Object({ sandbox: Type.String(), generation: count, opened_ms: count, closed_ms: nullable(count) })),
  operations: Type.Array(Type.Object({ id: Type.String(), kind: Type.String(), status: Type.String(), sandbox: Type.String() })),
  audit: Type.Record(Type.String(), count),
  events: Type.Record(Type.String(), count),
  keys: Type.Array(Type.Object({ route: Type.String(), subject: Type.String() })),
  outbox: count,
  unsealed: count,
  feed_holes: count,
})

export type Snapshot = Static<typeof SnapshotSchema>
export type SandboxState = Snapshot['sandboxes'][number]
export type AssignmentState = Snapshot['assignments'][number]
export type HostState = Snapshot['hosts'][number]

const parser = parserOf(SnapshotSchema)
const text = readFileSync(join(import.meta.dirname, 'snapshot.sql'), 'utf8')

let checked = false

export function takeSnapshot(postgres: SimulatedPostgres): Snapshot {
  const { rows, error } = postgres.look({ text, values: [] })
  if (error !== undefined) throw error
  const snapshot = rows[0]?.['snapshot']
  // The statement is ours: its shape is looked at once.
  if (!checked) parser.parse(snapshot)
  checked = true
  return snapshot as Snapshot
}

export const live = (snapshot: Snapshot): readonly AssignmentState[] => snapshot.assignments.filter(({ released_by }) => released_by === null)
