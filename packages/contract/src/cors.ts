/**
 * Which pages may speak to the API and to gateways: those whose origin is in an exact list, which is empty unless the operator names some.
 *
 * Keys are headers that a page sets itself, never cookies, so credentials are not allowed and a page that is not in the list could do nothing
 * with what a browser adds by itself. Pure; both servers answer by it.
 */

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ASKED =
  'Authorization, Content-Type, Accept, Idempotency-Key, Prefer, Range, If-Range, If-Match, If-None-Match, Last-Event-ID, Sandglass-Request-Id, Traceparent, Tracestate'
const TOLD =
  'Sandglass-Request-Id, Sandglass-Offset, Sandglass-Process-Id, Sandglass-Process-State, ETag, Content-Range, Content-Length, Retry-After, RateLimit, RateLimit-Policy, Location'
const PREFLIGHT_SECONDS = '600'

/** @throws RangeError naming what is not an origin: scheme and host, perhaps a port, nothing else */
export function parseOrigins(text: string | undefined): ReadonlySet<string> {
  const origins = (text ?? '')
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '')
  // A star parses as a part of a host name, and would match nothing.
  for (const origin of origins)
    if (origin.includes('*') || URL.parse(origin)?.origin !== origin) throw new RangeError(`'${origin}' is not an origin such as https://console.example`)
  return new Set(origins)
}

export type CorsAsked = { readonly method: string; readonly origin: string | undefined; readonly asksForMethod: boolean }
/** `isPreflight`: the headers are the whole answer, with 204. */
export type CorsAnswer = { readonly headers: Readonly<Record<string, string>>; readonly isPreflight: boolean }

export function corsAnswer({ method, origin, asksForMethod }: CorsAsked, allowed: ReadonlySet<string>): CorsAnswer {
  if (allowed.size === 0) return { headers: {}, isPreflight: false }
  // A cache must not give one origin the answer of another.
  if (origin === undefined || !allowed.has(origin)) return { headers: { vary: 'Origin' }, isPreflight: false }
  const headers = { vary: 'Origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': TOLD }
  if (method !== 'OPTIONS' || !asksForMethod) return { headers, isPreflight: false }
  return {
    headers: { ...headers, 'access-control-allow-methods': METHODS, 'access-control-allow-headers': ASKED, 'access-control-max-age': PREFLIGHT_SECONDS },
    isPreflight: true,
  }
}
