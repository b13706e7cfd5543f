/** A client of several API replicas and several gateways: whatever one of them does not serve, another does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, Sandglass } from '../src/index.ts'
import { Places } from '../src/places.ts'
import { hurriedWorld } from './hurried-world.ts'
import { ScriptedProcess } from './scripted-process.ts'
import { wireSandbox } from './scripted-sandboxes.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

const API_KEY = `sgk_${'a'.repeat(43)}`
const clientOf = (...urls: string[]) => new Sandglass({ url: urls.join(','), apiKey: API_KEY, world: hurriedWorld() })

/** Where nobody listens. */
async function goneUrl(): Promise<string> {
  await using server = await ScriptedServer.start()
  return server.url
}

test('a place stands for all of its group, and for nothing that only begins like it', () => {
  const places = new Places()
  places.learn(['http://a:1/', 'http://b:2'])
  assert.equal(places.at('http://b:2/v1/x?y=1'), 'http://a:1/v1/x?y=1')
  assert.equal(places.at('http://a:10/v1/x'), 'http://a:10/v1/x')
  assert.equal(places.others('http://a:1/v1'), 1)
  assert.equal(places.others('http://c:3/v1'), 0)
  places.failed('http://a:1/v1/x')
  assert.equal(places.at('http://a:1/v1/x'), 'http://b:2/v1/x')
  places.learn(['http://b:2', 'http://a:1'])
  assert.equal(places.at('http://a:1/v1/x'), 'http://b:2/v1/x', 'learning the same again forgets nothing')
  places.failed('http://a:1/v1/x')
  assert.equal(places.at('http://a:1/v1/x'), 'http://b:2/v1/x', 'one that is not asked any more cannot fail')
})

test('what was never received is sent elsewhere at once, also what must not be repeated', async () => {
  await using server = await ScriptedServer.start()
  server.on('DELETE', /^\/v1\/hosts\/h1$/, () => ({ status: 204 }))
  const world = hurriedWorld()
  const client = new Sandglass({ url: `${await goneUrl()},${server.url}`, apiKey: API_KEY, world })
  await client.hosts.remove('h1')
  assert.equal(server.countOf('DELETE', /h1$/), 1)
  assert.deepEqual(world.waits, [])
})

test('a create whose answer one replica loses is answered by another, with the same key', async () => {
  await using first = await ScriptedServer.start()
  await using other = await ScriptedServer.start()
  const keys: unknown[] = []
  first.on('POST', /sandboxes$/, ({ headers }) => {
    keys.push(headers['idempotency-key'])
    return 'drop'
  })
  other.on('POST', /sandboxes$/, ({ headers }) => {
    keys.push(headers['idempotency-key'])
    return { status: 201, json: wireSandbox(other) }
  })
  const sandbox = await Sandbox.create({ client: clientOf(first.url, other.url) })
  assert.equal(sandbox.id, wireSandbox(other).id)
  assert.equal(keys.length, 2)
  assert.equal(keys[0], keys[1])
})

test('a replica without its database is left for one that has it', async () => {
  await using first = await ScriptedServer.start()
  await using other = await ScriptedServer.start()
  first.on('GET', /sandboxes\/named$/, () => problem('unavailable', 'The database does not answer.', { 'retry-after': '1' }))
  other.on('GET', /sandboxes\/named$/, () => ({ status: 200, json: wireSandbox(other) }))
  const client = clientOf(first.url, other.url)
  await Sandbox.get('named', { client })
  await Sandbox.get('named', { client })
  assert.equal(first.asked.length, 1)
  assert.equal(other.asked.length, 2)
})

test('sessions and calls go on through another gateway', async () => {
  await using api = await ScriptedServer.start()
  await using gateway = await ScriptedServer.start()
  const gone = await goneUrl()
  api.on('POST', /sandboxes$/, () => ({ status: 201, json: wireSandbox(api, { gateway_url: gone, gateway_urls: [gone, gateway.url] }) }))
  new ScriptedProcess(gateway, { stdout: Buffer.from('through the other\n'), stderr: Buffer.alloc(0), exit: { exit_code: 0 } })
  // What the client asks where an upgrade was refused.
  gateway.on('POST', /\/signal$/, () => problem('process_not_found'))
  const sandbox = await Sandbox.create({ client: clientOf(api.url) })
  const spawned = await sandbox.spawn(['x'])
  assert.equal(await spawned.stdout.readText(), 'through the other\n')
  assert.equal((await spawned.exit).exitCode, 0)
})
