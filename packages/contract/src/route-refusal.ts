/** Paths that do not exist, paths that another server has, and methods that a path does not have. */
import { CodedError } from './errors.ts'
import { PUBLIC_ROUTES, type PublicRoute } from './public-api.ts'

const table: readonly (PublicRoute & { readonly expression: RegExp })[] = Object.values(PUBLIC_ROUTES).map((described: PublicRoute) => ({
  ...described,
  expression: new RegExp(`^${described.path.replace(/\{\w+\}/g, '[^/]+')}$`),
}))

const PLACES = { 'control-plane': 'the API', gateway: 'the gateway, at `gateway_url` of the sandbox' } as const

/**
 * @param server who was asked for a route that it does not have
 * @returns the error, and the methods that the path does have
 */
export function refuseRoute(server: PublicRoute['server'], method: string, path: string): { error: CodedError; allow: string[] } {
  const matches = table.filter((described) => described.expression.test(path))
  const elsewhere = matches.find((described) => described.method === method && described.server !== server)
  if (elsewhere !== undefined) return { error: new CodedError('route_not_found', `This path is served by ${PLACES[elsewhere.server]}.`), allow: [] }
  if (matches.length === 0) return { error: new CodedError('route_not_found', `There is no route ${path}.`), allow: [] }
  const allow = [...new Set(matches.map((described) => described.method))]
  return { error: new CodedError('method_not_allowed', `${path} has ${allow.join(', ')}, not ${method}.`), allow }
}
