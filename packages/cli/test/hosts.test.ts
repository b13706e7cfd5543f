/** `host …` as an operator types it, against a server that the test scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Drain, ERRORS, type Host } from '@sandglass/contract'
import { problem, ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { wireHost } from '../../sdk/test/wire-host.ts'
import { run, start } from './command-line.ts'

const drain = (change: Partial<Drain> = {}): Drain => ({
  state: 'draining',
  started_at: '2026-01-01T00:00:00Z',
  deadline_at: '2026-01-01T00:10:00Z',
  ends_at: '2026-01-01T00:09:30Z',
  left: 2,
  waits_for: [{ reason: 'ending', count: 2, detail: 'Not proved yet.' }],
  ...change,
})
const draining = wireHost({ status: 'draining', cordoned: true, drain: drain() })
const drained = wireHost({ status: 'drained', cordoned: true, drain: drain({ state: 'drained', left: 0, waits_for: [] }) })

async function scripted(host: Host = wireHost({ labels: { zone: 'eu-1a', class: 'big' } })): Promise<ScriptedServer> {
  const server = await ScriptedServer.start()
  server.on('GET', /^\/v1\/hosts$/, () => ({ status: 200, json: { items: [host], next_cursor: null } }))
  for (const method of ['GET', 'PATCH', 'POST']) server.on(method, /^\/v1\/hosts\/host-1/, () => ({ status: 200, json: host }))
  return server
}

test('ls is a table, or the objects of the API; status and label are asked of the server', async () => {
  await using server = await scripted()
  const { stdout } = await run(server, ['host', 'ls', '--status', 'ready', '--label', 'zone=eu-1a'])
  const [head, row] = stdout.toString().split('\n')
  assert.match(head ?? '', /^ID +NAME +STATUS +LEASE AGE +SANDBOXES +POOL +CPU +MEMORY +DISK +LABELS$/)
  assert.match(row ?? '', /^hoaaaaaaaaaaaaaaaa +host-1 +ready +3 s +1 +0 +0\.5\/8 +512\/1,000 MB +2\/10 GB +class=big zone=eu-1a$/)
  assert.equal(server.asked[0]?.rawQuery, 'status=ready&label=zone%3Deu-1a')
  const json = await run(server, ['host', 'ls', '--json=lines'])
  assert.deepEqual(JSON.parse(json.stdout.toString()), wireHost({ labels: { zone: 'eu-1a', class: 'big' } }))
  assert.match((await run(server, ['host', 'ls', '--status', 'busy'])).stderr, /--status takes one of ready, cordoned, draining, drained, lost, not 'busy'/)
  assert.match((await run(server, ['host', 'ls', '--label', 'zone'])).stderr, /--label takes KEY=VALUE/)
})

test('inspect says how far a drain is and what it waits for', async () => {
  await using server = await scripted(draining)
  const { stdout } = await run(server, ['host', 'inspect', 'host-1'])
  assert.match(stdout.toString(), /^status +draining \(2 left\)$/m)
  assert.match(stdout.toString(), /^drain +draining, 2 left, since 2026-01-01T00:00:00Z, deadline 2026-01-01T00:10:00Z/m)
  assert.match(stdout.toString(), /^waits for +2 ending: Not proved yet\.$/m)
  assert.deepEqual(JSON.parse((await run(server, ['host', 'inspect', 'host-1', '--json'])).stdout.toString()), draining)
})

test('cordon, uncordon and label send what was typed', async () => {
  await using server = await scripted()
  assert.equal((await run(server, ['host', 'cordon', 'host-1'])).stdout.toString(), 'host-1 is ready\n')
  assert.equal((await run(server, ['host', 'uncordon', 'host-1'])).code, 0)
  assert.match((await run(server, ['host', 'label', 'host-1', 'zone=a=b', 'class='])).stdout.toString(), /^labels +class=big zone=eu-1a$/m)
  assert.deepEqual(
    server.asked.map(({ method, path, body }) => `${method} ${path} ${String(body)}`.trim()),
    ['POST /v1/hosts/host-1/cordon', 'POST /v1/hosts/host-1/uncordon', 'PATCH /v1/hosts/host-1 {"labels":{"zone":"a=b","class":null}}'],
  )
  assert.match((await run(server, ['host', 'label', 'host-1', 'zone'])).stderr, /a label is KEY=VALUE, or KEY= to take it away, not 'zone'/)
  assert.match((await run(server, ['host', 'label', 'host-1'])).stderr, /LABEL is missing/)
})

test('drain waits until nothing is left, says what it waits for, and tells by its exit code when it could not', async () => {
  await using server = await scripted()
  const waiting = [draining, draining, drained]
  server.on('POST', /\/drain$/, () => ({ status: 202, json: draining }))
  server.on('GET', /^\/v1\/hosts\/hoaaaaaaaaaaaaaaaa$/, () => ({ status: 200, json: waiting.shift() ?? drained }))
  const done = await run(server, ['host', 'drain', 'host-1', '--deadline', '60'])
  assert.deepEqual([done.code, done.stdout.toString(), done.stderr], [0, 'host-1 is drained\n', '2 ending: Not proved yet.\n'])
  assert.equal(String(server.asked[0]?.body), '{"deadline_seconds":60}')
  const overdue = wireHost({ ...draining, drain: drain({ state: 'overdue' }) })
  server.on('GET', /^\/v1\/hosts\/hoaaaaaaaaaaaaaaaa$/, () => ({ status: 200, json: overdue }))
  const late = await run(server, ['host', 'drain', 'host-1', '--json'])
  assert.deepEqual([late.code, JSON.parse(late.stdout.toString())], [125, overdue])
  server.on('GET', /^\/v1\/hosts\/hoaaaaaaaaaaaaaaaa$/, () => ({ status: 200, json: wireHost() }))
  const calledOff = await run(server, ['host', 'drain', 'host-1'])
  assert.deepEqual([calledOff.code, calledOff.stdout.toString()], [125, 'host-1 is ready\n'])
  assert.match(calledOff.stderr, /the drain was called off\n$/)
  const before = server.asked.length
  const begun = await run(server, ['host', 'drain', 'host-1', '--no-wait'])
  assert.deepEqual([begun.code, begun.stdout.toString(), server.asked.length - before], [0, 'host-1 is draining (2 left)\n', 1])
})

test('Ctrl-C ends the waiting for a drain, and says that it goes on', async () => {
  await using server = await scripted(draining)
  const started = start(server, ['host', 'drain', 'host-1'])
  server.on('GET', /^\/v1\/hosts\/hoaaaaaaaaaaaaaaaa$/, () => {
    started.child.kill('SIGINT')
    return { status: 200, json: draining }
  })
  const { code, stderr } = await started.finished
  assert.equal(code, 130)
  assert.match(stderr, /the drain of host-1 goes on; `sandglass host uncordon host-1` calls it off\n$/)
})

test('rm removes the host that the name stands for; a refusal says what to do', async () => {
  await using server = await scripted()
  server.on('DELETE', /^\/v1\/hosts\/hoaaaaaaaaaaaaaaaa$/, () => ({ status: 204 }))
  assert.equal((await run(server, ['host', 'rm', 'host-1'])).stdout.toString(), 'hoaaaaaaaaaaaaaaaa\n')
  for (const [next, advice] of [
    [ERRORS.host_in_use.next, 'Empty it with `sandglass host drain HOST`, and remove it then.'],
    ['Their end is ordered.', 'Their end is ordered.'],
  ] as const) {
    server.on('DELETE', /^\/v1\/hosts/, () => problem('host_in_use', `Host host-1 holds 3 sandboxes. ${next}`))
    const refused = await run(server, ['host', 'rm', 'host-1'])
    assert.deepEqual([refused.code, refused.stderr], [125, `sandglass: host host-1 holds 3 sandboxes. ${advice} [host_in_use]\n`])
  }
})
