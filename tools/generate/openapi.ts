/** The OpenAPI 3.1 document, made from the contract's table of routes and its schemas. */
import { ERRORS, PROBLEM_MEDIA_TYPE, ProblemSchema, PUBLIC_ROUTES, type PublicRoute } from '@sandglass/contract'

type Json = { [key: string]: unknown }

const HEADERS = {
  'Idempotency-Key': 'A repeat with the same key and body gives the first answer.',
  Prefer: '`wait=N`: hold the answer until done or N seconds have passed.',
  'Last-Event-ID': 'The position of the last event seen; the answer goes on behind it.',
  Range: '`bytes=first-last`.',
  'If-Range': 'The part only while the ETag is this one, else the whole file.',
  'If-Match': 'Only when the ETag is this one.',
  'If-None-Match': '`*`: only when nothing is there.',
} as const

const STREAMS = {
  bytes: 'application/octet-stream',
  tar: 'application/x-tar',
  ndjson: 'application/x-ndjson',
  events: 'text/event-stream',
  text: 'text/plain',
} as const

const TITLES: Readonly<Record<number, string>> = {
  101: 'Switching protocols',
  200: 'Done',
  201: 'Made',
  202: 'Accepted, under way',
  204: 'Done, nothing to say',
  206: 'Part',
  304: 'Not changed',
}

const plain = (schema: unknown): Json => JSON.parse(JSON.stringify(schema))

/** Moves every schema that has a name into the components and leaves a reference. */
function refer(schema: unknown, components: Json): unknown {
  if (Array.isArray(schema)) return schema.map((item) => refer(item, components))
  if (schema === null || typeof schema !== 'object') return schema
  const { $id, ...rest } = schema as Json
  const body = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, refer(value, components)]))
  if (typeof $id !== 'string') return body
  components[$id] = body
  return { $ref: `#/components/schemas/${$id}` }
}

type Stream = keyof typeof STREAMS

function content(schema: object | Stream, components: Json): Json {
  if (typeof schema === 'string') return { [STREAMS[schema]]: { schema: { type: 'string', format: 'binary' } } }
  return { 'application/json': { schema: refer(plain(schema), components) } }
}

function parametersOf(route: PublicRoute): Json[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => ({ name: match[1], in: 'path', required: true, schema: { type: 'string' } }))
  const query = plain(route.query ?? {})
  const properties = (query['properties'] ?? {}) as Record<string, Json>
  const required = (query['required'] ?? []) as string[]
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }))
  const inHeader = (route.headers ?? []).map((name) => ({ name, in: 'header', required: false, description: HEADERS[name], schema: { type: 'string' } }))
  return [...inPath, ...inQuery, ...inHeader]
}

function responsesOf(route: PublicRoute, components: Json): Json {
  const responses: Json = {}
  for (const [status, schema] of Object.entries<object | Stream | null>(route.responses)) {
    const description = TITLES[Number(status)] ?? 'Done'
    if (schema === null) responses[status] = { description }
    else responses[status] = { description, content: content(schema, components) }
  }
  const byStatus = new Map<number, string[]>()
  for (const code of [...route.errors, 'internal'] as const) {
    const status = ERRORS[code].status
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const problem = refer(plain(ProblemSchema), components)
  for (const [status, codes] of byStatus) {
    responses[status] ??= { description: [...new Set(codes)].map((code) => `\`${code}\``).join(', '), content: { [PROBLEM_MEDIA_TYPE]: { schema: problem } } }
  }
  return responses
}

/** @returns the document as indented JSON with a final newline */
export function openapiDocument(): string {
  const components: Json = {}
  const paths: Record<string, Json> = {}
  for (const [operationId, route] of Object.entries<PublicRoute>(PUBLIC_ROUTES)) {
    const item = paths[route.path] ?? {}
    paths[route.path] = item
    item[route.method.toLowerCase()] = {
      operationId,
      summary: route.summary,
      tags: [route.server],
      'x-sandglass-role': route.role,
      ...(route.server === 'gateway'
        ? {
            servers: [
              { url: '{gateway_url}', description: 'The `gateway_url` of the sandbox.', variables: { gateway_url: { default: 'http://127.0.0.1:7071' } } },
            ],
          }
        : {}),
      parameters: parametersOf(route),
      ...(route.body === undefined ? {} : { requestBody: { required: true, content: content(route.body, components) } }),
      responses: responsesOf(route, components),
    }
  }
  const document = {
    openapi: '3.1.0',
    info: { title: 'Sandglass', version: '1', description: 'Isolated machines on hosts you own.', license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: 'http://127.0.0.1:7070' }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', bearerFormat: 'sgk_…' } },
      schemas: Object.fromEntries(Object.entries(components).sort()),
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
