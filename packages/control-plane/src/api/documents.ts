/** What anyone may read: the OpenAPI document, the reference made from it, and the page of error codes that the `type` of a problem leads to. */
import { readFileSync } from 'node:fs'
import { ERRORS } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import { html, PAGE_HEADERS, page, prose } from './html.ts'
import { referencePage } from './reference-page.ts'

export function documentRoutes(app: FastifyInstance, openapiFile: string): void {
  const openapi = readFileSync(openapiFile, 'utf8')
  const pages = { '/docs': referencePage(openapi), '/docs/errors': errorsPage() }
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json').send(openapi))
  for (const [path, text] of Object.entries(pages)) app.get(path, async (_request, reply) => reply.headers(PAGE_HEADERS).send(text))
}

function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, title, retryable, next }]) =>
      html`<tr id="${code}"><td><a href="#${code}"><code>${code}</code></a></td><td>${status}</td><td>${title}</td><td>${retryable ? 'yes' : 'no'}</td><td>${prose(next)}</td></tr>`,
  )
  return page(
    'Sandglass error codes',
    html`<h1>Error codes</h1>
<p>Every error is <code>application/problem+json</code> (RFC 9457); its <code>code</code> is one of these. <a href="/docs">API reference</a></p>
<table><thead><tr><th>code</th><th>status</th><th>title</th><th>retry</th><th>what to do</th></tr></thead><tbody>
${rows}
</tbody></table>`,
  )
}
