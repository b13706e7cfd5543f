/**
 * The guest protocol: what the host side and the guest agent say on the one channel of a sandbox.
 *
 * After connecting, the guest sends one preamble line, the host answers one line, then both speak HTTP/2 with the guest as server.
 * The preamble separates one connection from the next also where the wire has none of its own, and names the identity that the guest
 * holds, so that a host never speaks to the runtime of another generation. Bodies of processes and files are in `process.ts`, `file.ts`.
 */
import Type, { type Static } from 'typebox'
import { CodedError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { EnvSchema } from './sandbox.ts'
import { closed, nullable, parserOf } from './schema.ts'

export const GUEST_PROTOCOL_VERSION = 1

/**
 * Who writes to standard input, on POST …/stdin: only what the same writer gave counts as a repeat, an offset that another one overtook is refused. A
 * header, because a guest that was started before there was one passes over it.
 */
export const WRITER_HEADER = 'sandglass-writer'

/**
 * One line of the answer to POST …/stdin?stream=1, the input of a terminal that stays open. The answer begins at once, and whoever gets another
 * status has written nothing. `taken` counts the bytes of the body that are done with; it comes at least once each LIMITS.stdinReceiptBytes
 * and at the end. After `error` no more is taken. `offset` is that of the body's first byte; what others type meanwhile moves nothing.
 */
export const StdinReceiptSchema = Type.Union([
  closed({ type: Type.Literal('taken'), bytes: Type.Integer({ minimum: 0 }) }),
  closed({ type: Type.Literal('error'), code: Type.String({ maxLength: 64 }), detail: Type.String({ maxLength: 4_096 }) }),
])
export type StdinReceipt = Static<typeof StdinReceiptSchema>

const HEX_32 = Type.String({ pattern: '^[0-9a-f]{32}$' })

/** Guest → host. More fields may come with later versions, so this one schema is open. */
export const GuestPreambleSchema = Type.Object({
  protocol: Type.Literal('sandglass-guest'),
  version: Type.Integer({ minimum: 1 }),
  agent: Type.String({ maxLength: 64 }),
  boot_id: HEX_32,
  session: HEX_32,
  sandbox: nullable(Type.String({ maxLength: 64 })),
  generation: nullable(Type.Integer({ minimum: 0 })),
  features: Type.Array(Type.String({ maxLength: 32 }), { maxItems: 32 }),
})
export type GuestPreamble = Static<typeof GuestPreambleSchema>

/** Host → guest. */
export type HostPreamble = { accept: true; version: number; epoch: number } | { accept: false; reason: string }

export const IdentitySchema = closed({
  sandbox: Type.String(),
  generation: Type.Integer({ minimum: 0 }),
  hostname: Type.String({ maxLength: 63 }),
  env: EnvSchema,
  default_user: Type.String(),
  default_cwd: Type.String(),
  limits: closed({
    pids_max: Type.Optional(Type.Integer({ minimum: 1 })),
    nofile: Type.Optional(Type.Integer({ minimum: 1 })),
    nproc: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
})
export type Identity = Static<typeof IdentitySchema>

export const GuestHealthSchema = Type.Object({
  version: Type.Integer(),
  agent: Type.String(),
  boot_id: HEX_32,
  uptime_ms: Type.Integer(),
  sandbox: nullable(Type.String()),
  generation: nullable(Type.Integer()),
  processes_running: Type.Integer(),
})
export type GuestHealth = Static<typeof GuestHealthSchema>

export const GuestMetricsSchema = Type.Object({
  cpu_ms: Type.Integer(),
  memory_bytes: Type.Integer(),
  processes: Type.Integer(),
  zombies: Type.Integer(),
  disk_used_bytes: Type.Integer(),
  disk_total_bytes: Type.Integer(),
  agent_memory_bytes: Type.Integer(),
})
export type GuestMetrics = Static<typeof GuestMetricsSchema>

/** The guest agent's error body. */
export const GuestErrorSchema = Type.Object({ code: Type.String({ maxLength: 64 }), detail: Type.String({ maxLength: 4_096 }) })

const preamble = parserOf(GuestPreambleSchema, 'protocol_unsupported')

/** @param line without the newline @throws CodedError `protocol_unsupported` */
export function parseGuestPreamble(line: string): GuestPreamble {
  if (line.length > LIMITS.guestPreambleBytes) throw new CodedError('protocol_unsupported', 'The guest’s preamble is too long.')
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw new CodedError('protocol_unsupported', 'The guest’s preamble is not JSON.', { cause })
  }
  const parsed = preamble.parse(value)
  if (parsed.version !== GUEST_PROTOCOL_VERSION)
    throw new CodedError('protocol_unsupported', `The guest speaks version ${parsed.version}, this host ${GUEST_PROTOCOL_VERSION}.`)
  return parsed
}
