/** One question in JSON over a judging agent. */
import { type Agent, request } from 'node:https'
import { CodedError, parseProblem } from '@sandglass/contract'

const ANSWER_BYTES = 1024 * 1024

/** @throws CodedError what the other side says; `unavailable` when it cannot be reached; a refusal of the peer as it is */
export function jsonPost(url: URL, body: unknown, agent: Agent, signal: AbortSignal): Promise<unknown> {
  const text = JSON.stringify(body)
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const fail = (cause: Error): void =>
    reject(cause instanceof CodedError ? cause : new CodedError('unavailable', `${url.origin} cannot be reached: ${cause.message}`, { cause }))
  const asked = request(url, {
    method: 'POST',
    agent,
    signal,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
  })
  asked.on('error', fail)
  asked.once('response', (response) => {
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength
      if (bytes > ANSWER_BYTES) response.destroy(new Error('its answer is too long'))
      else chunks.push(chunk)
    })
    response.once('error', fail)
    response.once('end', () => {
      const status = response.statusCode ?? 0
      const value = jsonOf(Buffer.concat(chunks))
      if (status >= 200 && status < 300) return resolve(value)
      const problem = parseProblem(value)
      const told = problem?.epoch === undefined ? {} : { epoch: problem.epoch }
      reject(new CodedError(problem?.code ?? 'unavailable', problem?.detail ?? `${url.origin} answered ${status}.`, told))
    })
  })
  asked.end(text)
  return promise
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
