/**
 * Which requests a gateway may send through to a guest. Pure. A closed table: what a later guest protocol adds is forwarded when it stands
 * here, and the host's own requests (identity) never are. What a sandbox uses is not the guest's to say: the host answers that itself.
 */
import { CodedError, LIMITS, parseSandboxId, type SandboxId } from '@sandglass/contract'

const TARGET = /^\/sandboxes\/([a-z0-9]{1,64})\/generations\/(0|[1-9][0-9]{0,14})(\/v1\/[^?#]*)(\?[^#]*)?$/
const PROCESS = '[A-Za-z0-9._:%-]{1,512}'

const ROUTES: readonly (readonly [methods: readonly string[], path: RegExp])[] = [
  [['GET'], /^\/v1\/(health|metrics)$/],
  [['POST'], /^\/v1\/exec$/],
  [['GET', 'POST'], /^\/v1\/processes$/],
  [['GET', 'DELETE'], new RegExp(`^/v1/processes/${PROCESS}$`)],
  [['POST'], new RegExp(`^/v1/processes/${PROCESS}/(signal|stdin|resize)$`)],
  [['GET'], new RegExp(`^/v1/processes/${PROCESS}/output$`)],
  [['GET', 'HEAD', 'PUT', 'DELETE'], /^\/v1\/files$/],
  [['GET'], /^\/v1\/files\/(stat|list|watch)$/],
  [['GET', 'PUT'], /^\/v1\/files\/archive$/],
  [['POST'], /^\/v1\/files\/(mkdir|move|copy|chmod)$/],
]

const USAGE = '/v1/usage'

export type GuestTarget = {
  readonly sandbox: SandboxId
  readonly generation: number
  /** Path and query for the guest, byte for byte as they came. */
  readonly path: string
  /** The host answers it; the guest never sees it. */
  readonly asksForUsage: boolean
}

/** @throws CodedError `route_not_found`, `method_not_allowed`, `sandbox_not_found`, `limit_exceeded` */
export function parseTarget(method: string, url: string): GuestTarget {
  if (url.length > LIMITS.dataPlanePathBytes) {
    throw new CodedError('limit_exceeded', 'The path is too long.', { limit: { name: 'dataPlanePathBytes', value: LIMITS.dataPlanePathBytes } })
  }
  const [, id = '', generation = '', path = '', query = ''] = TARGET.exec(url) ?? []
  if (path === '') throw new CodedError('route_not_found')
  const sandbox = parseSandboxId(id)
  if (sandbox === undefined) throw new CodedError('sandbox_not_found')
  const asksForUsage = path === USAGE && query === ''
  if (asksForUsage && method === 'GET') return { sandbox, generation: Number(generation), path, asksForUsage }
  const routes = ROUTES.filter(([, pattern]) => pattern.test(path))
  if (routes.length === 0) throw new CodedError('route_not_found')
  if (!routes.some(([methods]) => methods.includes(method))) throw new CodedError('method_not_allowed')
  return { sandbox, generation: Number(generation), path: path + query, asksForUsage: false }
}
