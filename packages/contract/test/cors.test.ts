import assert from 'node:assert/strict'
import { test } from 'node:test'
import { corsAnswer, parseOrigins } from '../src/cors.ts'
import { ticketOfProtocols, ticketProtocol } from '../src/session-ticket.ts'

const allowed = parseOrigins('https://console.example, http://localhost:5173')

test('origins are exact, and what is none is named', () => {
  assert.deepEqual([...allowed], ['https://console.example', 'http://localhost:5173'])
  assert.equal(parseOrigins(undefined).size, 0)
  assert.equal(parseOrigins('').size, 0)
  for (const text of ['*', 'console.example', 'https://console.example/', 'https://console.example/path', 'null', 'https://*.example'])
    assert.throws(() => parseOrigins(text), /is not an origin/, text)
})

test('an allowed origin is answered, others are not, and nothing is when the list is empty', () => {
  const asked = { method: 'GET', origin: 'https://console.example', asksForMethod: false }
  const { headers } = corsAnswer(asked, allowed)
  assert.equal(headers['access-control-allow-origin'], 'https://console.example')
  assert.equal('access-control-allow-credentials' in headers, false)
  assert.deepEqual(corsAnswer({ ...asked, method: 'OPTIONS', asksForMethod: true }, allowed).isPreflight, true)
  for (const origin of ['https://console.example.evil', 'http://console.example', 'null', undefined])
    assert.deepEqual(corsAnswer({ method: 'OPTIONS', origin, asksForMethod: true }, allowed), { headers: { vary: 'Origin' }, isPreflight: false })
  assert.deepEqual(corsAnswer(asked, new Set()), { headers: {}, isPreflight: false })
})

test('a ticket is found among other subprotocols', () => {
  assert.equal(ticketOfProtocols(`sandglass.v1, ${ticketProtocol('abc')}`), 'abc')
  assert.equal(ticketOfProtocols('sandglass.v1'), undefined)
  assert.equal(ticketOfProtocols(undefined), undefined)
})
