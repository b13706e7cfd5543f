/** /v1/operations */
import { CodedError } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import { awaitOperation } from '../services/operation-wait.ts'
import { preferredWaitMs, waitSignal } from './prefer.ts'
import { type RouteContext, route } from './route.ts'
import { operationView } from './views.ts'

export function operationRoutes(app: FastifyInstance, context: RouteContext): void {
  route(app, context, 'getOperation', async ({ principal, subject, request, reply }) => {
    const operation = await awaitOperation(context, principal.tenantId, subject, preferredWaitMs(request, reply), waitSignal(reply))
    if (operation === undefined) throw new CodedError('operation_not_found')
    void reply.send(operationView(operation))
  })
}
