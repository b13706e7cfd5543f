/** A server that has enough for the moment: its `Retry-After` is waited for, then the same call goes through. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandglass } from '../src/client.ts'
import { hurriedWorld } from './hurried-world.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

for (const code of ['rate_limited', 'overloaded', 'unavailable'] as const) {
  test(`${code}: waits as long as it is told, and no call is lost`, async () => {
    await using server = await ScriptedServer.start()
    let refusals = 2
    server.on('GET', /^\/v1\/templates$/, () => {
      refusals -= 1
      return refusals >= 0 ? problem(code, undefined, { 'retry-after': '3' }) : { status: 200, json: { items: [], next_cursor: null } }
    })
    const world = hurriedWorld(10_000)
    const client = new Sandglass({ url: server.url, apiKey: `sgk_${'a'.repeat(43)}`, world })
    for await (const _template of client.templates.list()) assert.fail('there is none')
    assert.equal(server.asked.length, 3)
    assert.ok(
      world.waits.every((ms) => ms >= 3_000),
      String(world.waits),
    )
    assert.equal(world.waits.length, 2)
  })
}
