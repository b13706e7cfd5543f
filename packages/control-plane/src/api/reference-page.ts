/** The API reference as one page, made from the OpenAPI document: an anchor for each operation and each schema, links from an operation's errors. */
import { ERRORS, isErrorCode, parserOf } from '@sandglass/contract'
import { type Html, html, page, prose } from '@sandglass/contract/html'
import Type, { type Static } from 'typebox'

const Text = Type.Optional(Type.String())
const SchemaText = Type.Unknown()
const OperationPart = Type.Object({
  operationId: Type.String(),
  summary: Type.String(),
  tags: Type.Array(Type.String()),
  'x-sandglass-role': Type.String(),
  parameters: Type.Array(Type.Object({ name: Type.String(), in: Type.String(), required: Type.Boolean(), description: Text, schema: SchemaText })),
  requestBody: Type.Optional(Type.Object({ content: Type.Record(Type.String(), Type.Object({ schema: SchemaText })) })),
  responses: Type.Record(
    Type.String(),
    Type.Object({ description: Type.String(), content: Type.Optional(Type.Record(Type.String(), Type.Object({ schema: SchemaText }))) }),
  ),
})
type Operation = Static<typeof OperationPart>
type Content = { readonly [mediaType: string]: { readonly schema: unknown } }

const documents = parserOf(
  Type.Object({
    paths: Type.Record(Type.String(), Type.Record(Type.String(), OperationPart)),
    components: Type.Object({ schemas: Type.Record(Type.String(), SchemaText) }),
  }),
)

type Named = { readonly method: string; readonly path: string; readonly operation: Operation }

/** @param openapi the document as text */
export function referencePage(openapi: string): string {
  const { paths, components } = documents.parse(JSON.parse(openapi))
  const operations: Named[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const of = (server: string) => operations.filter(({ operation }) => operation.tags.includes(server))
  const section = (title: string, note: string, named: readonly Named[]) => html`<section>
<h2>${title}</h2>
<p>${prose(note)}</p>
${named.map(operationPart)}
</section>`
  return page(
    'Sandglass API reference',
    html`<h1>Sandglass API</h1>
<p>JSON over HTTP with <code>Authorization: Bearer sgk_…</code>. Errors are <code>application/problem+json</code> (RFC 9457): <a href="/docs/errors">all codes</a>. The same as <a href="/openapi.json">OpenAPI 3.1</a>.</p>
<nav aria-label="Operations"><ul>
${operations.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}"><span class="method">${method}</span> ${path}</a></li>`)}
</ul></nav>
${section('Control plane', 'Served at the address of this page.', of('control-plane'))}
${section('Gateway', 'Served at the `gateway_url` that a sandbox tells.', of('gateway'))}
<section>
<h2>Schemas</h2>
${Object.entries(components.schemas).map(([name, schema]) => html`<h3 id="schema-${name}">${name}</h3>\n${schemaPart(schema)}`)}
</section>`,
  )
}

function operationPart({ method, path, operation }: Named): Html {
  const role = operation['x-sandglass-role']
  const rows = operation.parameters.map(
    (parameter) =>
      html`<tr><td><code>${parameter.name}</code></td><td>${parameter.in}${parameter.required ? ', required' : ''}</td><td>${typeOf(parameter.schema)}</td><td>${prose(parameter.description ?? descriptionOf(parameter.schema))}</td></tr>`,
  )
  return html`<article id="${operation.operationId}">
<h3><a href="#${operation.operationId}"><span class="method">${method}</span> <code>${path}</code></a></h3>
<p>${prose(operation.summary)}. <span class="note">${role === 'anyone' ? 'For anyone.' : `For the role ${role} and above.`}</span></p>
${rows.length === 0 ? [] : [html`<table><thead><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr></thead><tbody>\n${rows}\n</tbody></table>`]}
${operation.requestBody === undefined ? [] : [html`<p>Body: ${contentPart(operation.requestBody.content)}</p>`]}
<table><thead><tr><th>status</th><th>answer</th></tr></thead><tbody>
${Object.entries(operation.responses).map(([status, { description, content }]) => html`<tr><td>${status}</td><td>${answerPart(description, content)}</td></tr>`)}
</tbody></table>
</article>`
}

/** A refusal's description is a list of codes; each leads to what it says. */
function answerPart(description: string, content: Content | undefined): Html {
  const codes = [...description.matchAll(/`([a-z_]+)`/g)].flatMap((match) => (match[1] !== undefined && isErrorCode(match[1]) ? [match[1]] : []))
  if (codes.length > 0) return html`${codes.map((code) => html`<a href="/docs/errors#${code}"><code>${code}</code></a> ${ERRORS[code].title}<br>`)}`
  return content === undefined ? prose(description) : html`${description}: ${contentPart(content)}`
}

const contentPart = (content: Content): Html =>
  html`${Object.entries(content).map(([type, { schema }]) => html`<code>${type}</code> ${type === 'application/json' ? typeOf(schema) : ''}`)}`

/** The fields of an object as a table; of anything else its type. */
function schemaPart(schema: unknown): Html {
  const properties = field(schema, 'properties')
  if (!isObject(properties)) return html`<p>${typeOf(schema)} ${prose(descriptionOf(schema))}</p>`
  const required = field(schema, 'required')
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name)
  const rows = Object.entries(properties).map(
    ([name, of]) =>
      html`<tr><td><code>${name}</code></td><td>${typeOf(of)}${isRequired(name) ? '' : ', optional'}</td><td>${prose(descriptionOf(of))}</td></tr>`,
  )
  return html`<table><tbody>\n${rows}\n</tbody></table>`
}

const BOUNDS = {
  minimum: '≥',
  maximum: '≤',
  minLength: 'length ≥',
  maxLength: 'length ≤',
  minItems: 'items ≥',
  maxItems: 'items ≤',
  default: 'default',
} as const

function typeOf(schema: unknown): Html {
  const ref = field(schema, '$ref')
  if (typeof ref === 'string') {
    const name = ref.split('/').at(-1) ?? ''
    return html`<a href="#schema-${name}">${name}</a>`
  }
  const either = field(schema, 'anyOf')
  if (Array.isArray(either)) return html`${either.map((one, index) => html`${index === 0 ? '' : ' or '}${typeOf(one)}`)}`
  const words = field(schema, 'enum')
  if (Array.isArray(words)) return html`${words.map((word, index) => html`${index === 0 ? '' : ' | '}<code>${String(word)}</code>`)}`
  if (isObject(field(schema, 'properties'))) return html`object ${schemaPart(schema)}`
  const items = field(schema, 'items')
  if (items !== undefined) return html`list of ${typeOf(items)}`
  const type = field(schema, 'type')
  const bounds = Object.entries(BOUNDS).flatMap(([name, sign]) => {
    const value = field(schema, name)
    return typeof value === 'number' ? [`${sign} ${value}`] : []
  })
  return html`${typeof type === 'string' ? type : 'any'}${bounds.length === 0 ? '' : ` (${bounds.join(', ')})`}`
}

function descriptionOf(schema: unknown): string {
  const text = field(schema, 'description')
  return typeof text === 'string' ? text : ''
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)
const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)
