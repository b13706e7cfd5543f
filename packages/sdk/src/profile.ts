/**
 * Where a client finds its base URL and key when it is not told: SANDGLASS_URL and SANDGLASS_API_KEY, else the `profile.json` of an
 * installation on this machine (SANDGLASS_HOME, default /var/lib/sandglass). Nothing here runs in a browser: there is no environment.
 */
import { ProfileSchema } from '@sandglass/contract/profile'
import { parseUrls } from '@sandglass/contract/replicas'
import { parserOf } from '@sandglass/contract/schema'
import { jsonOf, parseAnswer, SandglassError } from './error.ts'

export type Connection = {
  /** Of the API. Several replicas separated by commas: any will do, and the client goes on to another when one does not answer. */
  readonly url: string
  readonly apiKey: string
}

/** The same with its replicas apart; `url` is the first. */
export type FoundConnection = Connection & { readonly urls: readonly string[] }

/** What finding a connection needs of the process. */
export type Surroundings = {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Text of a file, or undefined when there is none. */
  readonly readText: (path: string) => string | undefined
}

export const DEFAULT_HOME = '/var/lib/sandglass'
const profileParser = parserOf(ProfileSchema)

/** The surroundings of this Node.js process; nothing in a browser. */
export function processSurroundings(): Surroundings {
  if (typeof process === 'undefined' || typeof process.getBuiltinModule !== 'function') return { environment: {}, readText: () => undefined }
  const fs = process.getBuiltinModule('node:fs')
  return {
    environment: process.env,
    readText(path) {
      try {
        return fs.readFileSync(path, 'utf8')
      } catch (cause) {
        if (cause instanceof Error && 'code' in cause && cause.code === 'EACCES') {
          throw new SandglassError('unauthenticated', `${path} may not be read by this user. Run as its owner, or set SANDGLASS_URL and SANDGLASS_API_KEY.`, {
            cause,
          })
        }
        return undefined
      }
    },
  }
}

/**
 * @param given what the caller said; it wins, part by part
 * @throws SandglassError `unauthenticated` when there is no key to be found
 */
export function findConnection(given: Partial<Connection>, surroundings: Surroundings): FoundConnection {
  const url = given.url ?? nonEmpty(surroundings.environment.SANDGLASS_URL)
  const apiKey = given.apiKey ?? nonEmpty(surroundings.environment.SANDGLASS_API_KEY)
  if (url !== undefined && apiKey !== undefined) return { ...checkedUrls(url), apiKey }
  const path = `${nonEmpty(surroundings.environment.SANDGLASS_HOME) ?? DEFAULT_HOME}/profile.json`
  const text = surroundings.readText(path)
  if (text === undefined) {
    throw new SandglassError(
      'unauthenticated',
      `No Sandglass is known here: ${path} does not exist. Run \`sandglass up\`, or set SANDGLASS_URL and SANDGLASS_API_KEY.`,
    )
  }
  const profile = parseAnswer((value) => profileParser.parse(value), jsonOf(text), path)
  // The key of a profile belongs to the profile's own server; it is never sent to another.
  if (url !== undefined && !areAmong(checkedUrls(url).urls, checkedUrls(profile.url).urls)) {
    throw new SandglassError('unauthenticated', `${path} holds a key for ${profile.url}, not for ${url}. Set SANDGLASS_API_KEY too.`)
  }
  return { ...checkedUrls(url ?? profile.url), apiKey: apiKey ?? profile.api_key }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text
}

function checkedUrls(text: string): { readonly url: string; readonly urls: readonly string[] } {
  const urls = parseUrls(text)
  if (urls !== undefined) return { url: urls[0], urls }
  if (/\/\/[^/]*@/.test(text)) throw new SandglassError('invalid_request', 'Give the key as apiKey, not inside the URL.')
  throw new SandglassError('invalid_request', `${text} is not an http or https URL, nor several separated by commas.`)
}

function areAmong(urls: readonly string[], others: readonly string[]): boolean {
  const origins = new Set(others.map((url) => new URL(url).origin))
  return urls.every((url) => origins.has(new URL(url).origin))
}
