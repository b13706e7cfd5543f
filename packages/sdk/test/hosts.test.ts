import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandglass } from '../src/index.ts'
import { ScriptedServer } from './scripted-server.ts'
import { wireHost } from './wire-host.ts'

const KEY = `sgk_${'k'.repeat(43)}`

test('hosts: each method asks for what its name says, and gives the host', async () => {
  await using server = await ScriptedServer.start()
  for (const method of ['GET', 'PATCH', 'POST']) {
    server.on(method, /^\/v1\/hosts\/host%2F1(\/\w+)?$/, ({ path }) => ({ status: path.endsWith('/drain') ? 202 : 200, json: wireHost() }))
  }
  server.on('DELETE', /^\/v1\/hosts\/host%2F1$/, () => ({ status: 204 }))
  server.on('GET', /^\/v1\/hosts$/, () => ({ status: 200, json: { items: [wireHost()], next_cursor: null } }))
  const { hosts } = new Sandglass({ url: server.url, apiKey: KEY })
  const listed = []
  for await (const { name } of hosts.list({ status: 'ready', label: ['zone', 'eu=1'] })) listed.push(name)
  assert.deepEqual(listed, ['host-1'])
  assert.equal((await hosts.get('host/1')).name, 'host-1')
  await hosts.label('host/1', { zone: 'a', class: null })
  await hosts.cordon('host/1')
  await hosts.uncordon('host/1')
  await hosts.drain('host/1', { deadlineSeconds: 60 })
  await hosts.drain('host/1')
  await hosts.remove('host/1')
  assert.deepEqual(
    server.asked.map(({ method, path, rawQuery, body }) => `${method} ${path}${rawQuery === '' ? '' : `?${rawQuery}`} ${String(body)}`.trim()),
    [
      'GET /v1/hosts?status=ready&label=zone%3Deu%3D1',
      'GET /v1/hosts/host%2F1',
      'PATCH /v1/hosts/host%2F1 {"labels":{"zone":"a","class":null}}',
      'POST /v1/hosts/host%2F1/cordon',
      'POST /v1/hosts/host%2F1/uncordon',
      'POST /v1/hosts/host%2F1/drain {"deadline_seconds":60}',
      'POST /v1/hosts/host%2F1/drain {}',
      'DELETE /v1/hosts/host%2F1',
    ],
  )
})

test('hosts: an option that a call does not have is refused', () => {
  const { hosts } = new Sandglass({ url: 'http://127.0.0.1:1', apiKey: KEY })
  const misspelt: object = { deadline: 60 }
  assert.throws(() => hosts.drain('h', misspelt), /hosts\.drain has no option `deadline`; it has deadlineSeconds, signal, timeoutMs\./)
  assert.throws(() => hosts.list({ ...misspelt }), /hosts\.list has no option `deadline`/)
})
