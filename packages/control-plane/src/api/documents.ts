/** What anyone may read: the OpenAPI document, the reference made from it, and the page of error codes that the `type` of a problem leads to. */
import { readFileSync } from 'node:fs'
import { ERRORS_PATH } from '@sandglass/contract'
import { errorsPage } from '@sandglass/contract/errors-page'
import { PAGE_HEADERS } from '@sandglass/contract/html'
import type { FastifyInstance } from 'fastify'
import { referencePage } from './reference-page.ts'

const REFERENCE_PATH = '/docs'

export function documentRoutes(app: FastifyInstance, openapiFile: string): void {
  const openapi = readFileSync(openapiFile, 'utf8')
  const pages = { [REFERENCE_PATH]: referencePage(openapi), [ERRORS_PATH]: errorsPage(REFERENCE_PATH) }
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json').send(openapi))
  for (const [path, text] of Object.entries(pages)) app.get(path, async (_request, reply) => reply.headers(PAGE_HEADERS).send(text))
}
