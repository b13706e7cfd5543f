/** Pages of listed origins may ask the API; a list that is empty changes nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { allowOrigins } from '../src/api/allow-origins.ts'

const ORIGIN = 'https://console.example'

async function ask(allowed: readonly string[], method: 'GET' | 'OPTIONS', origin: string) {
  const app = Fastify()
  allowOrigins(app, new Set(allowed))
  app.get('/v1/sandboxes', async () => ({ items: [] }))
  const headers = { origin, ...(method === 'OPTIONS' ? { 'access-control-request-method': 'POST' } : {}) }
  const { statusCode, headers: answered } = await app.inject({ method, url: '/v1/sandboxes', headers })
  await app.close()
  return [statusCode, answered['access-control-allow-origin'], answered['vary']]
}

test('a listed origin is answered, also before a request that is not simple', async () => {
  assert.deepEqual(await ask([ORIGIN], 'GET', ORIGIN), [200, ORIGIN, 'Origin'])
  assert.deepEqual(await ask([ORIGIN], 'OPTIONS', ORIGIN), [204, ORIGIN, 'Origin'])
})

test('another origin is told nothing, and nobody is when there is no list', async () => {
  assert.deepEqual(await ask([ORIGIN], 'GET', 'https://evil.example'), [200, undefined, 'Origin'])
  assert.deepEqual(await ask([ORIGIN], 'OPTIONS', 'https://evil.example'), [404, undefined, 'Origin'])
  assert.deepEqual(await ask([], 'GET', ORIGIN), [200, undefined, undefined])
})
