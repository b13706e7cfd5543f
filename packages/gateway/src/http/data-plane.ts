/**
 * Serves the gateway's part of the table of public routes: admission, query, handler, answer.
 *
 * Fastify finds the route; bodies are left as streams and answers are written here, because both must keep back-pressure, and because an
 * answer that breaks after its headers must break the connection.
 */
import type { ServerResponse } from 'node:http'
import { CodedError, type Parser, PUBLIC_ROUTES, type PublicRoute, type PublicRouteName, parserOf, type Role } from '@sandglass/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Admission } from '../auth/admission.ts'
import type { SessionTickets } from '../auth/session-tickets.ts'
import type { BufferBudget } from '../exec/buffer-budget.ts'
import { exec } from '../exec/exec.ts'
import { readArchive, writeArchive } from '../files/archive.ts'
import { changeMode, copyFile, makeDirectory, moveFile } from '../files/change-files.ts'
import { listFiles, statFile } from '../files/describe-file.ts'
import { headFile, readFile } from '../files/read-file.ts'
import { watchFiles } from '../files/watch-files.ts'
import { deleteFile, writeFile } from '../files/write-file.ts'
import { codedError, type ProblemPlace, REQUEST_ID_HEADER, sendProblem } from '../problems/send-problem.ts'
import { resizeProcess, signalProcess, writeStdin } from '../processes/process-control.ts'
import { getProcess, listProcesses } from '../processes/process-list.ts'
import { readOutput } from '../processes/process-output.ts'
import { createSessionTicket } from '../session/create-session-ticket.ts'
import { getUsage } from '../usage/get-usage.ts'
import type { World } from '../world.ts'
import type { Answer, Handler } from './call.ts'
import { ClientGone } from './client-stream.ts'
import { processSegment } from './process-segment.ts'
import { emptyQuery, parseQuery } from './raw-query.ts'
import { discardRest } from './upload.ts'

type GatewayRouteName = { [Name in PublicRouteName]: (typeof PUBLIC_ROUTES)[Name]['server'] extends 'gateway' ? Name : never }[PublicRouteName]

/** With an upgrade a terminal has its own way in; this is without one. */
const terminal: Handler = () => Promise.reject(new CodedError('invalid_request', 'A terminal is a WebSocket; ask for an upgrade.'))

const HANDLERS: Record<GatewayRouteName, Handler> = {
  exec,
  listProcesses,
  getProcess,
  signalProcess,
  resizeProcess,
  writeStdin,
  readOutput,
  readFile,
  headFile,
  writeFile,
  deleteFile,
  statFile,
  listFiles,
  makeDirectory,
  moveFile,
  copyFile,
  changeMode,
  watchFiles,
  readArchive,
  writeArchive,
  createSessionTicket,
  getUsage,
  terminal,
}

export type DataPlane = { readonly admission: Admission; readonly budget: BufferBudget; readonly tickets: SessionTickets; readonly world: World }

export function registerDataPlane(app: FastifyInstance, plane: DataPlane): void {
  for (const [name, handler] of Object.entries(HANDLERS)) registerRoute(app, plane, routeNamed(name), handler)
}

function routeNamed(name: string): PublicRoute {
  const route = Object.entries(PUBLIC_ROUTES).find(([candidate]) => candidate === name)?.[1]
  if (route === undefined) throw new Error(`there is no public route ${name}`)
  return route
}

function roleOf({ role, path }: PublicRoute): Role {
  if (role === 'anyone') throw new Error(`${path} needs a role`)
  return role
}

function registerRoute(app: FastifyInstance, plane: DataPlane, route: PublicRoute, handler: Handler): void {
  const needed = roleOf(route)
  const query: Parser<unknown> = route.query === undefined ? emptyQuery : parserOf(route.query)
  app.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    handler: async (request, reply) => {
      reply.hijack()
      await serve(plane, request, reply, needed, query, handler)
    },
  })
}

async function serve(plane: DataPlane, request: FastifyRequest, reply: FastifyReply, needed: Role, query: Parser<unknown>, handler: Handler): Promise<void> {
  const response = reply.raw
  const place = { instance: request.url.split('?')[0] ?? '', requestId: request.id }
  response.setHeader(REQUEST_ID_HEADER, request.id)
  try {
    const { session, guest } = await plane.admission.admit(request.raw, { sandboxId: param(request, 'id'), needed, traceparent: request.span?.traceparent })
    const work: Promise<void>[] = []
    const onClose = () => {
      if (!response.writableFinished) session.close(new ClientGone())
    }
    response.once('close', onClose)
    if (response.closed) onClose()
    try {
      const answer = await handler({
        request: request.raw,
        response,
        query: parseQuery(request.url, query),
        process: processParam(request),
        session,
        guest,
        requestId: request.id,
        budget: plane.budget,
        tickets: plane.tickets,
        world: plane.world,
        keepUntil: (promise) => work.push(promise),
      })
      sendAnswer(reply, answer)
    } finally {
      void Promise.allSettled(work).then(() => session[Symbol.dispose]())
    }
  } catch (error) {
    answerError(plane, response, error, place)
  }
  discardRest(request.raw)
}

function answerError({ world }: DataPlane, response: ServerResponse, error: unknown, place: ProblemPlace): void {
  if (error instanceof ClientGone) {
    response.destroy()
    return
  }
  const told = codedError(error)
  if (told.code === 'internal') world.log('error', 'request_failed', { request_id: place.requestId, reason: internalReason(error) })
  if (response.headersSent) response.destroy()
  else if (!response.destroyed) sendProblem(response, told, place)
}

function internalReason(error: unknown): string | undefined {
  if (error instanceof CodedError) return error.cause instanceof Error ? error.cause.message : error.message
  return error instanceof Error ? error.stack : String(error)
}

function sendAnswer(reply: FastifyReply, answer: Answer): void {
  if (answer === 'streamed') return
  const { raw } = reply
  if (answer.json === undefined) {
    raw.writeHead(answer.status, { 'cache-control': 'no-store' })
    raw.end()
    return
  }
  const body = Buffer.from(JSON.stringify(answer.json))
  raw.writeHead(answer.status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', 'content-length': body.byteLength })
  raw.end(body)
}

function param(request: FastifyRequest, name: 'id' | 'process_id'): string {
  const { params } = request
  if (typeof params !== 'object' || params === null) return ''
  const value = Object.entries(params).find(([key]) => key === name)?.[1]
  return typeof value === 'string' ? value : ''
}

function processParam(request: FastifyRequest): string {
  const text = param(request, 'process_id')
  return text === '' ? '' : processSegment(text)
}
