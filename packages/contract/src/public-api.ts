/**
 * The routes of the public API: one table from which servers register their routes and the OpenAPI document is made.
 *
 * `server` says who serves it. Paths are in OpenAPI form. A role is the least one that may call it (viewer < member < owner < operator).
 */
import { FILE_ROUTES } from './public-api/file-routes.ts'
import { HOST_ROUTES } from './public-api/host-routes.ts'
import { INSTALLATION_ROUTES } from './public-api/installation-routes.ts'
import { JOIN_TOKEN_ROUTES } from './public-api/join-token-routes.ts'
import { PROCESS_ROUTES } from './public-api/process-routes.ts'
import type { PublicRoute } from './public-api/public-route.ts'
import { SANDBOX_ROUTES } from './public-api/sandbox-routes.ts'
import { SESSION_ROUTES } from './public-api/session-routes.ts'

export * from './public-api/lists.ts'
export type { PublicRoute } from './public-api/public-route.ts'
export { EventsQuerySchema, ListSandboxesQuerySchema } from './public-api/sandbox-routes.ts'

export const PUBLIC_ROUTES = {
  ...SANDBOX_ROUTES,
  ...HOST_ROUTES,
  ...JOIN_TOKEN_ROUTES,
  ...INSTALLATION_ROUTES,
  ...PROCESS_ROUTES,
  ...FILE_ROUTES,
  ...SESSION_ROUTES,
} as const satisfies Record<string, PublicRoute>

export type PublicRouteName = keyof typeof PUBLIC_ROUTES
