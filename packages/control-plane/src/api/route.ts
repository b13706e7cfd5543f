/**
 * Registers a route of the contract's table: its path, who may call it, and the parsing of what comes in are taken from there, so a handler sees only
 * checked values. Order of refusals: 503, 401, 429, 403, 400, then what the handler finds.
 */
import { CodedError, PUBLIC_ROUTES, type PublicRouteName, parserOf, requireRole } from '@sandglass/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { Admission } from '../admission/admission.ts'
import type { Context } from '../context.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import type { KeyUsage } from '../services/key-usage.ts'
import type { Principal } from '../store/api-keys.ts'
import { authenticate, keyDigestOf } from './authentication.ts'
import { goneSignal } from './prefer.ts'
import { convertQuery } from './query.ts'

type Routes = typeof PUBLIC_ROUTES
export type ControlPlaneRoute = { [Name in PublicRouteName]: Routes[Name]['server'] extends 'control-plane' ? Name : never }[PublicRouteName]

type Part<Name extends PublicRouteName, Field extends 'body' | 'query'> = Routes[Name] extends { readonly [key in Field]: infer Schema }
  ? Schema extends TSchema
    ? Static<Schema>
    : undefined
  : undefined

export type Call<Name extends ControlPlaneRoute> = {
  readonly principal: Principal
  readonly body: Part<Name, 'body'>
  readonly query: Part<Name, 'query'>
  /** The one variable of the path. */
  readonly subject: string
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

export type RouteContext = Context & { readonly keyUsage: KeyUsage; readonly admission: Admission }

export function route<Name extends ControlPlaneRoute>(
  app: FastifyInstance,
  context: RouteContext,
  name: Name,
  handle: (call: Call<Name>) => Promise<void>,
): void {
  const described = PUBLIC_ROUTES[name]
  const parseBody = partParser<Part<Name, 'body'>>('body' in described ? described.body : undefined)
  const querySchema: TSchema | undefined = 'query' in described ? described.query : undefined
  const parseQuery = partParser<Part<Name, 'query'>>(querySchema)
  app.route({
    method: described.method,
    url: described.path.replace(/\{(\w+)\}/g, ':$1'),
    onRequest: async (request, reply) => {
      const digest = keyDigestOf(request)
      const place = await context.admission.enter(digest, request.raw, goneSignal(reply))
      request.place = place
      reply.raw.once('close', () => place.leave())
      const principal = await authenticate(context.db, request, digest)
      if (digest !== undefined) context.admission.remember(digest, principal)
      context.keyUsage.note(principal.apiKeyId)
      const { headers, refusal } = context.admission.rates.take(principal)
      void reply.headers(headers)
      if (refusal !== undefined) throw refusal
      requireRole(principal.role, described.role)
      request.principal = principal
    },
    handler: async (request, reply) => {
      const { principal } = request
      if (principal === null) throw new InvariantBroken('a route was entered without a principal')
      const query = querySchema === undefined ? onlyEmpty(request.query) : convertQuery(querySchema, request.query)
      await handle({ principal, body: parseBody(request.body), query: parseQuery(query), subject: subjectOf(request.params), request, reply })
      return reply
    },
  })
}

/** A route without a schema for a part takes nothing there. */
function partParser<T>(schema: TSchema | undefined): (value: unknown) => T {
  if (schema === undefined) {
    return (value) => {
      if (value !== undefined && value !== null)
        throw new CodedError('invalid_request', 'This request takes no body.', { errors: [{ path: '/', message: 'is not expected' }] })
      return undefined as T
    }
  }
  const parser = parserOf(schema)
  // `T` is what the schema says; the table's types and the schema come from the same entry.
  return (value) => parser.parse(value === undefined ? {} : value) as T
}

function onlyEmpty(query: unknown): undefined {
  const [field] = typeof query === 'object' && query !== null ? Object.keys(query) : []
  if (field === undefined) return undefined
  throw new CodedError('invalid_request', `/${field} is not a known field.`, { errors: [{ path: `/${field}`, message: 'is not a known field' }] })
}

/** What no id and no name can be finds nothing. */
const NAMEABLE = /^[\x21-\x7e]{1,160}$/

function subjectOf(params: unknown): string {
  const [value] = typeof params === 'object' && params !== null ? Object.values(params) : []
  return typeof value === 'string' && NAMEABLE.test(value) ? value : ''
}
