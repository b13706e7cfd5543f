/** How clients reach an installation: the file `profile.json` (mode 0600) in its home, and the user's own file of several. */
import Type, { type Static } from 'typebox'
import { closed, nullable } from './schema.ts'

export const ProfileSchema = closed({
  url: Type.String({ pattern: '^https?://', description: 'Base URL of the API.' }),
  api_key: Type.String({ description: 'Secret.' }),
})
export type Profile = Static<typeof ProfileSchema>

export const PROFILE_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

export const ProfilesSchema = closed({
  /** The one that counts when nothing else is said; null: the environment, or the installation on this machine. */
  current: nullable(Type.String()),
  profiles: Type.Record(Type.String({ pattern: PROFILE_NAME_PATTERN }), ProfileSchema, { additionalProperties: false }),
})
export type Profiles = Static<typeof ProfilesSchema>
