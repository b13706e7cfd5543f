/** Hosts, for operators. Every change may be repeated: what is so already stays so; a second removal finds no host. */
import Type from 'typebox'
import { DrainHostSchema, HostSchema, HostStatusSchema, UpdateHostSchema } from '../host.ts'
import { closed } from '../schema.ts'
import { HostListSchema, page } from './lists.ts'
import { api, type PublicRoute } from './public-route.ts'

const ListHostsQuerySchema = closed({
  ...page,
  status: Type.Optional(HostStatusSchema),
  label: Type.Optional(Type.String({ maxLength: 128, description: '`key=value`, exact.' })),
})

/** Of every route that names one host, by id or name. */
const host = [...api, 'host_not_found', 'host_ambiguous'] as const

export const HOST_ROUTES = {
  listHosts: {
    method: 'GET',
    path: '/v1/hosts',
    server: 'control-plane',
    role: 'operator',
    summary: 'List hosts',
    query: ListHostsQuerySchema,
    responses: { 200: HostListSchema },
    errors: api,
  },
  getHost: {
    method: 'GET',
    path: '/v1/hosts/{id}',
    server: 'control-plane',
    role: 'operator',
    summary: 'Read a host, by id or name',
    responses: { 200: HostSchema },
    errors: host,
  },
  updateHost: {
    method: 'PATCH',
    path: '/v1/hosts/{id}',
    server: 'control-plane',
    role: 'operator',
    summary: 'Set and take away labels',
    body: UpdateHostSchema,
    responses: { 200: HostSchema },
    errors: [...host, 'limit_exceeded'],
  },
  cordonHost: {
    method: 'POST',
    path: '/v1/hosts/{id}/cordon',
    server: 'control-plane',
    role: 'operator',
    summary: 'Place and claim nothing more on a host; what runs there goes on, its pools are emptied',
    responses: { 200: HostSchema },
    errors: host,
  },
  uncordonHost: {
    method: 'POST',
    path: '/v1/hosts/{id}/uncordon',
    server: 'control-plane',
    role: 'operator',
    summary: 'Use a host again; a drain that is under way ends here, what it has ended stays ended',
    responses: { 200: HostSchema },
    errors: host,
  },
  drainHost: {
    method: 'POST',
    path: '/v1/hosts/{id}/drain',
    server: 'control-plane',
    role: 'operator',
    summary: 'Cordon a host, and end or move what is on it before a deadline; `drain` of the host tells how far it is',
    body: DrainHostSchema,
    responses: { 202: HostSchema },
    errors: host,
  },
  removeHost: {
    method: 'DELETE',
    path: '/v1/hosts/{id}',
    server: 'control-plane',
    role: 'operator',
    summary: 'Remove a host on which nothing is assigned; its lease is over, and it comes back only by registering anew, cordoned',
    responses: { 204: null },
    errors: [...host, 'host_in_use'],
  },
} as const satisfies Record<string, PublicRoute>
