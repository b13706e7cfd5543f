/** Reads the manifests of the templates directory into rows, at the start and now and then, so that a new version is there without a restart. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newTemplateVersionId, parserOf, type RandomBytes, TemplateManifestSchema } from '@sandglass/contract'
import type { Log } from '../context.ts'
import type { Database } from '../store/database.ts'
import { putTemplateVersion } from '../store/templates.ts'

const manifests = parserOf(TemplateManifestSchema)

export class TemplateScan {
  readonly #directory: string | undefined
  readonly #db: Database
  readonly #random: RandomBytes
  readonly #log: Log
  /** Manifest texts that are in the tables already, by file. */
  readonly #known = new Map<string, string>()

  constructor(options: { directory: string | undefined; db: Database; random: RandomBytes; log: Log }) {
    this.#directory = options.directory
    this.#db = options.db
    this.#random = options.random
    this.#log = options.log
  }

  async run(): Promise<void> {
    if (this.#directory === undefined) return
    for (const file of await manifestFiles(this.#directory)) {
      const text = await readFile(join(this.#directory, file), 'utf8').catch(() => undefined)
      if (text === undefined || this.#known.get(file) === text) continue
      await this.#take(file, text)
    }
  }

  async #take(file: string, text: string): Promise<void> {
    let manifest: ReturnType<typeof manifests.parse>
    try {
      manifest = manifests.parse(JSON.parse(text))
    } catch (error) {
      this.#log.warn({ file, err: error }, 'a template manifest is not one')
      this.#known.set(file, text)
      return
    }
    const isNew = await putTemplateVersion(this.#db, newTemplateVersionId(this.#random), manifest)
    this.#known.set(file, text)
    if (isNew) this.#log.info({ template: manifest.name, digest: manifest.digest }, 'template version')
  }
}

async function manifestFiles(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => [])
  return names.filter((name) => name.endsWith('.json')).sort()
}
