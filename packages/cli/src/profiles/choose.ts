/** Which server a command speaks with, and with whose key. Pure. */
import type { Profile, Profiles } from '@sandglass/contract/profile'
import { parseUrls } from '@sandglass/contract/replicas'
import { UsageError } from '../usage-error.ts'

export type Given = {
  /** `--profile`. */
  readonly profile: string | undefined
  /** `--url`. */
  readonly url: string | undefined
  /** What the file of `--api-key-file` holds. */
  readonly apiKey: string | undefined
}

/** What the SDK is to be told; it finds the rest in the environment, else in the installation on this machine. */
export type Chosen = { readonly url?: string; readonly apiKey?: string }

/**
 * Options win over a profile that is named (`--profile`, SANDGLASS_PROFILE), that over the environment, that over the current profile.
 * @throws UsageError when the profile is not there, or its key would go to another server than its own
 */
export function chooseConnection(given: Given, environment: Readonly<Record<string, string | undefined>>, config: () => Profiles): Chosen {
  const own: Chosen = { ...(given.url === undefined ? {} : { url: given.url }), ...(given.apiKey === undefined ? {} : { apiKey: given.apiKey }) }
  if (given.url !== undefined && given.apiKey !== undefined && given.profile === undefined) return own
  const named = given.profile ?? (environment['SANDGLASS_PROFILE'] || undefined)
  if (named !== undefined) return withProfile(own, named, profileNamed(config(), named))
  if (environment['SANDGLASS_URL'] || environment['SANDGLASS_API_KEY']) return own
  const { current, profiles } = config()
  const profile = current === null ? undefined : profiles[current]
  if (current === null || profile === undefined) return own
  // With another server in mind, the current profile is simply not meant.
  if (given.url !== undefined && !isSameServer(given.url, profile.url)) return own
  return withProfile(own, current, profile)
}

/** @throws UsageError naming those that are there */
export function profileNamed(config: Profiles, name: string): Profile {
  const profile = Object.hasOwn(config.profiles, name) ? config.profiles[name] : undefined
  if (profile !== undefined) return profile
  const names = Object.keys(config.profiles)
  throw new UsageError(`there is no profile '${name}'; ${names.length === 0 ? 'make it with `sandglass config set`' : `there are ${names.join(', ')}`}`)
}

function withProfile(own: Chosen, name: string, profile: Profile): Chosen {
  const chosen = { url: profile.url, apiKey: profile.api_key, ...own }
  if (own.apiKey === undefined && !isSameServer(chosen.url, profile.url)) {
    throw new UsageError(`the key of profile '${name}' is for ${profile.url}, not for ${chosen.url}; give --api-key-file too`)
  }
  return chosen
}

/** Each of several replicas is one of the other's. */
export function isSameServer(one: string, other: string): boolean {
  const origins = (text: string): string[] => (parseUrls(text) ?? []).map((url) => new URL(url).origin)
  const [ours, theirs] = [origins(one), new Set(origins(other))]
  return ours.length > 0 && ours.every((origin) => theirs.has(origin))
}
