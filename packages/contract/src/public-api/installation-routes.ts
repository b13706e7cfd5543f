/** What an installation has: templates, API keys, room, and what a tenant may hold of it. Hosts stand apart (host-routes.ts). */
import { CreateApiKeySchema, CreatedApiKeySchema } from '../api-key.ts'
import { CapacitySchema } from '../capacity.ts'
import { QuotaSchema } from '../quota.ts'
import { TemplateSchema } from '../template.ts'
import { ApiKeyListSchema, PageQuerySchema, TemplateListSchema } from './lists.ts'
import { api, type PublicRoute } from './public-route.ts'

export const INSTALLATION_ROUTES = {
  listTemplates: {
    method: 'GET',
    path: '/v1/templates',
    server: 'control-plane',
    role: 'viewer',
    summary: 'List templates',
    query: PageQuerySchema,
    responses: { 200: TemplateListSchema },
    errors: api,
  },
  getTemplate: {
    method: 'GET',
    path: '/v1/templates/{name}',
    server: 'control-plane',
    role: 'viewer',
    summary: 'Read a template',
    responses: { 200: TemplateSchema },
    errors: [...api, 'template_not_found'],
  },
  getQuotas: {
    method: 'GET',
    path: '/v1/quotas',
    server: 'control-plane',
    role: 'viewer',
    summary: 'Read what the tenant of the key may hold, and holds',
    responses: { 200: QuotaSchema },
    errors: api,
  },
  getCapacity: {
    method: 'GET',
    path: '/v1/capacity',
    server: 'control-plane',
    role: 'operator',
    summary: 'Read what the fleet offers and what waits for it',
    responses: { 200: CapacitySchema },
    errors: api,
  },
  createApiKey: {
    method: 'POST',
    path: '/v1/api-keys',
    server: 'control-plane',
    role: 'owner',
    summary: 'Create an API key; its secret is shown once',
    headers: ['Idempotency-Key'],
    body: CreateApiKeySchema,
    responses: { 201: CreatedApiKeySchema },
    errors: api,
  },
  listApiKeys: {
    method: 'GET',
    path: '/v1/api-keys',
    server: 'control-plane',
    role: 'owner',
    summary: 'List API keys',
    query: PageQuerySchema,
    responses: { 200: ApiKeyListSchema },
    errors: api,
  },
  revokeApiKey: {
    method: 'DELETE',
    path: '/v1/api-keys/{id}',
    server: 'control-plane',
    role: 'owner',
    summary: 'Revoke an API key; its sessions close within five seconds',
    responses: { 204: null },
    errors: [...api, 'api_key_not_found'],
  },
} as const satisfies Record<string, PublicRoute>
