/** /healthz, /readyz, /metrics, and the state of the reconcilers for operators. */
import { CodedError, requireRole } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { observeControlPlane, observeDatabase, type ProcessSources } from '../metrics/observe.ts'
import { ping } from '../store/ping.ts'
import { authenticate } from './authentication.ts'

export function healthRoutes(app: FastifyInstance, context: Context, sources: ProcessSources): void {
  observeControlPlane(context, sources)
  const readDatabase = observeDatabase(context)

  app.get('/healthz', async (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/readyz', async (_request, reply) => {
    await ping(context.db.for('reconcilers'))
    if (!sources.listening()) throw new CodedError('unavailable', 'The connection that listens for wake-ups is not there.')
    return reply.send({ status: 'ready' })
  })

  app.get('/metrics', async (_request, reply) => {
    await readDatabase()
    return reply.type('text/plain; version=0.0.4').send(context.metrics.text())
  })

  app.get('/internal/v1/reconcilers', async (request, reply) => {
    requireRole((await authenticate(context.db, request)).role, 'operator')
    return reply.send({ items: sources.reconcilers() })
  })
}
