/** JSON bodies: bounded in size (by the server) and in depth (here), and nothing but JSON. */
import { CodedError, LIMITS, parseJsonText } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'

/** Bodies become parsed values; an absent body becomes undefined. */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, parseBody(text.toString()))
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  })
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => {
    // DELETE and GET with an empty body and some content type are harmless.
    if (text.length === 0) done(null, undefined)
    else done(new CodedError('unsupported_media_type', 'The body must be application/json.'))
  })
}

function parseBody(text: string): unknown {
  if (text.trim() === '') return undefined
  const depth = jsonDepth(text)
  if (depth > LIMITS.apiJsonDepth) {
    throw new CodedError('limit_exceeded', `The body is nested ${depth} levels deep or more; at most ${LIMITS.apiJsonDepth} are allowed.`, {
      limit: { name: 'apiJsonDepth', value: LIMITS.apiJsonDepth },
    })
  }
  try {
    return parseJsonText(text)
  } catch (cause) {
    if (cause instanceof CodedError) throw cause
    throw new CodedError('invalid_request', `The body is not JSON: ${cause instanceof Error ? cause.message.slice(0, 200) : 'it cannot be parsed'}.`, {
      errors: [{ path: '/', message: 'is not JSON' }],
    })
  }
}

/** Deepest nesting of brackets outside strings; stops counting just past the limit. */
export function jsonDepth(text: string): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (inString) {
      if (character === '\\') index += 1
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{' || character === '[') {
      depth += 1
      if (depth > deepest) deepest = depth
      if (deepest > LIMITS.apiJsonDepth) return deepest
    } else if (character === '}' || character === ']') depth -= 1
  }
  return deepest
}
