/** Join tokens, for operators: how a machine becomes a host or a gateway of the installation. */
import { CreatedJoinTokenSchema, CreateJoinTokenSchema } from '../join-token.ts'
import { JoinTokenListSchema, PageQuerySchema } from './lists.ts'
import { api, type PublicRoute } from './public-route.ts'

export const JOIN_TOKEN_ROUTES = {
  createJoinToken: {
    method: 'POST',
    path: '/v1/join-tokens',
    server: 'control-plane',
    role: 'operator',
    summary: 'Make a token with which one machine joins, once; it is shown once',
    body: CreateJoinTokenSchema,
    responses: { 201: CreatedJoinTokenSchema },
    errors: api,
  },
  listJoinTokens: {
    method: 'GET',
    path: '/v1/join-tokens',
    server: 'control-plane',
    role: 'operator',
    summary: 'List join tokens',
    query: PageQuerySchema,
    responses: { 200: JoinTokenListSchema },
    errors: api,
  },
  revokeJoinToken: {
    method: 'DELETE',
    path: '/v1/join-tokens/{id}',
    server: 'control-plane',
    role: 'operator',
    summary: 'Revoke a join token; who has joined with it stays',
    responses: { 204: null },
    errors: [...api, 'join_token_not_found'],
  },
} as const satisfies Record<string, PublicRoute>
