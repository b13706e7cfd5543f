/** /internal/v1/hosts: the API of host agents. A certificate opens what is of its own host only. */
import { CodedError, HostReportsSchema, LIMITS, parseHostId, parserOf, RegisterHostSchema, RenewLeaseSchema } from '@sandglass/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import type { PeerGate } from '../identities/peer-gate.ts'
import { type HeldLease, readLease, renewLease } from '../store/hosts.ts'
import { registerHost } from './register-host.ts'
import { applyReports } from './reports.ts'
import { staleEpoch } from './stale-epoch.ts'
import { HostWatch } from './watch.ts'

const registers = parserOf(RegisterHostSchema)
const renewals = parserOf(RenewLeaseSchema)
const reports = parserOf(HostReportsSchema)

/** @param streams what is open until it closes; ended when the process ends */
export function internalHostRoutes(app: FastifyInstance, context: Context, gate: PeerGate, streams: Set<() => void>): void {
  const db = context.db.for('hosts')
  const known = new Set<string>()
  const bodyLimit = LIMITS.hostBodyBytes
  const options = {
    bodyLimit,
    onRequest: async (request: FastifyRequest): Promise<void> => {
      await gate.enter(request, 'host', hostOf(request))
    },
  }
  const anyHost = {
    bodyLimit,
    onRequest: async (request: FastifyRequest): Promise<void> => {
      await gate.enter(request, 'host')
    },
  }

  app.post('/internal/v1/hosts/register', anyHost, async (request, reply) => {
    const host = registers.parse(request.body)
    // Whose it is stands in the body, which is read behind the certificate.
    const machine = await gate.enter(request, 'host', host.host_id)
    return reply.send(await gate.noting(request, () => registerHost(context, host, machine)))
  })

  app.post('/internal/v1/hosts/:id/renew', options, async (request, reply) => {
    const { epoch, boot_id } = renewals.parse(request.body)
    const hostId = hostOf(request)
    const lease = await renewLease(db, hostId, epoch, boot_id)
    if (lease === undefined) throw staleEpoch(epoch, (await leaseOf(hostId)).epoch)
    await context.world.faults.reach('renew.committed')
    return reply.send(lease)
  })

  app.post('/internal/v1/hosts/:id/reports', options, async (request, reply) => {
    const { epoch, items } = reports.parse(request.body)
    return reply.send(await applyReports(context, { hostId: await knownHost(request), epoch }, items))
  })

  app.get('/internal/v1/hosts/:id/watch', options, async (request, reply) => {
    const epoch = epochOf(request.query)
    const hostId = hostOf(request)
    const lease = await leaseOf(hostId)
    if (lease.epoch !== epoch || !lease.held) throw staleEpoch(epoch, lease.epoch)
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    const watch = new HostWatch(context, { hostId, epoch, output: reply.raw })
    const close = (): void => watch.close()
    const stopWatching = gate.watchOver(request, close)
    streams.add(close)
    context.bus.emit([{ topic: 'placement', key: '' }])
    await watch.run()
    stopWatching()
    streams.delete(close)
  })

  /** A host that registered once is never forgotten, so it is looked up once. */
  async function knownHost(request: FastifyRequest): Promise<string> {
    const hostId = hostOf(request)
    if (known.has(hostId)) return hostId
    await leaseOf(hostId)
    known.add(hostId)
    return hostId
  }

  async function leaseOf(hostId: string): Promise<HeldLease> {
    const lease = await readLease(db, hostId)
    if (lease === undefined) throw new CodedError('host_not_found')
    return lease
  }
}

function hostOf(request: FastifyRequest): string {
  const { params } = request
  const text = typeof params === 'object' && params !== null && 'id' in params && typeof params.id === 'string' ? params.id : ''
  const id = parseHostId(text)
  if (id === undefined) throw new CodedError('host_not_found')
  return id
}

function epochOf(query: unknown): number {
  const text = typeof query === 'object' && query !== null && 'epoch' in query ? query.epoch : undefined
  if (typeof text === 'string' && /^\d{1,15}$/.test(text)) return Number(text)
  throw new CodedError('invalid_request', '/epoch must be the epoch that the host holds.', { errors: [{ path: '/epoch', message: 'must be a number' }] })
}
