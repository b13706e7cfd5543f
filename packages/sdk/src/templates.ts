/** Templates: what sandboxes are made from. */

import { TemplateListSchema } from '@sandglass/contract/public-api'
import { parserOf } from '@sandglass/contract/schema'
import { type Template, TemplateSchema } from '@sandglass/contract/template'
import type { Sandglass } from './client.ts'
import { type ListOptions, listPages } from './pages.ts'
import type { CallOptions } from './transport.ts'

const parser = parserOf(TemplateSchema)
const page = parserOf(TemplateListSchema)

export class Templates {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  list(options: ListOptions = {}): AsyncGenerator<Template, void, undefined> {
    return listPages(this.#client.transport, `${this.#client.url}/v1/templates`, {}, page, options)
  }

  /** @throws SandglassError `template_not_found` */
  get(name: string, options: CallOptions = {}): Promise<Template> {
    return this.#client.transport.json(
      { ...options, method: 'GET', url: `${this.#client.url}/v1/templates/${encodeURIComponent(name)}`, repeatable: true },
      parser,
    )
  }
}
