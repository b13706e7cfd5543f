/** Templates and their immutable versions. */
import type { TemplateManifest } from '@sandglass/contract'
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

export type TemplateRow = { readonly name: string; readonly digest: string; readonly size_bytes: number; readonly created_at: Date }

const put = statement<{ id: string }>('templates/put')
const find = statement<TemplateRow>('templates/find')
const list = statement<TemplateRow>('templates/list')

/** Makes this version the current one. @returns true when it was not known */
export const putTemplateVersion = async (db: Queryable, id: string, manifest: TemplateManifest): Promise<boolean> =>
  (await db.run(put, [id, manifest.name, manifest.digest, manifest.size_bytes, JSON.stringify(manifest.packages), manifest.created_at])).length === 1

/** @param digest null: the current version */
export const findTemplate = async (db: Queryable, name: string, digest: string | null): Promise<TemplateRow | undefined> =>
  (await db.run(find, [name, digest]))[0]

export const listTemplates = async (db: Queryable, afterName: string | undefined, limit: number): Promise<TemplateRow[]> =>
  await db.run(list, [afterName ?? null, limit])
