/** A versioned image; a version is an immutable digest. */
import Type, { type Static } from 'typebox'
import { TimeSchema } from './sandbox.ts'
import { closed } from './schema.ts'

const DIGEST = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' })

export const TemplateSchema = closed(
  {
    name: Type.String(),
    digest: DIGEST,
    size_bytes: Type.Integer({ minimum: 0 }),
    created_at: TimeSchema,
  },
  { $id: 'Template' },
)
export type Template = Static<typeof TemplateSchema>

/** The manifest that lies beside a template file in the templates directory, `<name>.json`. */
export const TemplateManifestSchema = closed({
  name: Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
  digest: DIGEST,
  file: Type.String({ pattern: '^[a-z0-9-]+\\.erofs$' }),
  size_bytes: Type.Integer({ minimum: 1 }),
  packages: Type.Array(Type.String()),
  created_at: TimeSchema,
})
export type TemplateManifest = Static<typeof TemplateManifestSchema>
