/**
 * Tickets and end orders: what a control plane signs and a host agent believes.
 *
 * The signed thing is the exact text of the payload, carried as a string, so no canonical form of JSON is needed. The payload binds the
 * runtime spec by digest. `term` is the lease sequence of the host in the SQL read that found the assignment (mint.read), never the
 * moment of signing; a host refuses a ticket once it has heard of a sequence beyond term + LIMITS.ticketTerms (ticket.term).
 * No wall clock takes part.
 */
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { CodedError } from './errors.ts'
import { AmountsSchema } from './host.ts'
import { ID_PATTERNS } from './ids.ts'
import { type PoolOrder, PoolOrderSchema, PoolPositionSchema, type PoolSpec, PoolSpecSchema, poolSpecText } from './pool.ts'
import { EnvSchema, NetworkModeSchema, ResourcesSchema } from './sandbox.ts'
import { closed, nullable, oneOf, parserOf } from './schema.ts'

const position = Type.Integer({ minimum: 0 })

/** Everything a host needs to start a runtime. Carried beside the ticket as text; bound to it by SHA-256. */
export const RuntimeSpecSchema = closed({
  sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
  driver: oneOf(['gvisor', 'fake']),
  template: closed({ name: Type.String(), digest: Type.String() }),
  resources: ResourcesSchema,
  network: closed({ mode: NetworkModeSchema }),
  hostname: Type.String({ maxLength: 63 }),
  env: EnvSchema,
  pids_max: Type.Integer({ minimum: 1 }),
})
export type RuntimeSpec = Static<typeof RuntimeSpecSchema>

export const StartTicketSchema = closed({
  kind: Type.Literal('start'),
  sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
  generation: position,
  host: Type.String({ pattern: ID_PATTERNS.host }),
  epoch: position,
  term: position,
  spec_sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  amounts: AmountsSchema,
  /** The pool as the claim of a unit left it (pool.ticket); null for a placement that took none, which never gets a member. */
  pool: nullable(PoolPositionSchema),
})
export type StartTicket = Static<typeof StartTicketSchema>

export const EndOrderSchema = closed({
  kind: Type.Literal('end'),
  sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
  upto: position,
  host: Type.String({ pattern: ID_PATTERNS.host }),
  term: position,
  /** As in the ticket of the assignment that ends: the ticket itself may never arrive. Applied only in the epoch named beside it. */
  pool: nullable(closed({ epoch: position, position: PoolPositionSchema })),
})
export type EndOrder = Static<typeof EndOrderSchema>

const SignedPayloadSchema = Type.Union([StartTicketSchema, EndOrderSchema, PoolOrderSchema])
export type SignedPayload = StartTicket | EndOrder | PoolOrder

export const SignedSchema = closed({
  payload: Type.String({ maxLength: 4_096 }),
  key_id: Type.String({ maxLength: 64 }),
  signature: Type.String({ maxLength: 128, description: 'Ed25519 over the payload’s UTF-8 bytes, base64url.' }),
})
export type Signed = Static<typeof SignedSchema>

const payloadParser = parserOf(SignedPayloadSchema, 'ticket_invalid')
const specParser = parserOf(RuntimeSpecSchema, 'ticket_invalid')

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

export function signPayload(payload: SignedPayload, key: { id: string; privateKey: KeyObject }): Signed {
  const text = JSON.stringify(payload)
  return { payload: text, key_id: key.id, signature: sign(null, Buffer.from(text, 'utf8'), key.privateKey).toString('base64url') }
}

/**
 * Checks signature and shape, nothing of the state of a host.
 * @param keys public keys by id, as told at registration
 * @throws CodedError `ticket_invalid`
 */
export function verifySigned(signed: Signed, keys: ReadonlyMap<string, KeyObject>): SignedPayload {
  const key = keys.get(signed.key_id)
  if (key === undefined) throw new CodedError('ticket_invalid', 'The ticket is signed with a key that this host does not know.')
  if (!verify(null, Buffer.from(signed.payload, 'utf8'), key, Buffer.from(signed.signature, 'base64url'))) {
    throw new CodedError('ticket_invalid', 'The signature of the ticket is wrong.')
  }
  return payloadParser.parse(parseJson(signed.payload))
}

/** @throws CodedError `ticket_invalid` when the text is not what the ticket is bound to */
export function parseSpec(text: string, ticket: StartTicket): RuntimeSpec {
  if (sha256Hex(text) !== ticket.spec_sha256) throw new CodedError('ticket_invalid', 'The spec is not the one that the ticket names.')
  const spec = specParser.parse(parseJson(text))
  if (spec.sandbox !== ticket.sandbox) throw new CodedError('ticket_invalid', 'The spec is for another sandbox.')
  return spec
}

export const poolKeyOf = (spec: PoolSpec): string => sha256Hex(poolSpecText(spec))

/** The pool whose members could become this runtime. */
export const poolSpecOf = ({ driver, template, resources, network, pids_max }: RuntimeSpec): PoolSpec => ({ driver, template, resources, network, pids_max })

const poolSpecParser = parserOf(PoolSpecSchema, 'ticket_invalid')

/** @throws CodedError `ticket_invalid` when the text is not what the key is the digest of */
export function parsePoolSpec(text: string, key: string): PoolSpec {
  if (sha256Hex(text) !== key) throw new CodedError('ticket_invalid', 'The spec is not the one that the pool’s key names.')
  return poolSpecParser.parse(parseJson(text))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new CodedError('ticket_invalid', 'The ticket is not JSON.', { cause })
  }
}
