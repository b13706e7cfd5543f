/** The failure table: API or database down; a kill between commit and answer; a scheduler that dies after reserving; a gateway that restarts. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { Sandbox, type Sandglass } from '@sandglass/sdk'
import type { Api } from '../api.ts'
import { Fleet, measured } from './fleet.ts'

const LIMIT_MS = 120_000
/** Longer than a look of anything that might fence or end something on the sly, shorter than what a host may run without a renewal. */
const OUTAGE_MS = 12_000
const RECOVERY_MS = 20_000
/** A query on a connection that went silent is given up after 15 s (store/database.ts). */
const ANSWER_MS = 25_000

let fleet: Fleet
let client: Sandglass
before(async () => {
  fleet = await Fleet.start({ hosts: 2 })
  client = fleet.client()
})
after(() => fleet[Symbol.asyncDispose]())
afterEach(async () => {
  for (const { name } of fleet.state.plan.nodes) {
    fleet.heal(name)
    if (fleet.isDead(name)) await fleet.restart(name)
  }
})

/** A process that prints a number ten times a second, over one session that stays open. */
async function counting(sandbox: Sandbox): Promise<{ seen: () => number; gaps: () => number; end: () => Promise<void> }> {
  const process = await sandbox.spawn(['sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done'])
  let last = 0
  let gaps = 0
  let rest = ''
  const reading = (async () => {
    for await (const chunk of process.stdout) {
      const lines = (rest + Buffer.from(chunk).toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (Number(line) !== last + 1) gaps += 1
        last = Number(line)
      }
    }
  })()
  return {
    seen: () => last,
    gaps: () => gaps,
    end: async () => {
      await process.kill()
      await reading
    },
  }
}

/** A create by hand, which repeats nothing. */
async function createOnce(api: Api): Promise<{ status: number; retryAfter: string; tookMs: number }> {
  const began = performance.now()
  const response = await fetch(`${api.url}/v1/sandboxes`, {
    method: 'POST',
    headers: { ...api.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ isolation: 'fake' }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  await response.body?.cancel()
  return { status: response.status, retryAfter: response.headers.get('retry-after') ?? '', tookMs: Math.round(performance.now() - began) }
}

async function quietFor(ms: number): Promise<void> {
  const until = performance.now() + ms
  await measured(ms + 5_000, 'time passing', () => (performance.now() >= until ? true : undefined))
}

describe('API or database down', () => {
  test('with every control plane dead, sessions and commands go on, and creates wait for one to come back', { timeout: LIMIT_MS }, async (context) => {
    const sandbox = await fleet.create()
    const count = await counting(sandbox)
    await measured(5_000, 'the first numbers', () => (count.seen() > 3 ? true : undefined))
    await Promise.all([fleet.kill('cp1'), fleet.kill('cp2')])
    const before = count.seen()
    await quietFor(OUTAGE_MS)
    assert.ok(count.seen() > before + 50, `${count.seen() - before} lines came during the outage`)
    const creating = fleet.create({ timeoutMs: 60_000 }).catch((error: unknown) => error)
    const back = performance.now()
    await fleet.restart('cp1')
    const later = await fleet.create()
    context.diagnostic(`ready again ${Math.round(performance.now() - back)} ms after a control plane was started`)
    await creating
    await fleet.restart('cp2')
    assert.equal((await sandbox.exec(['echo', 'still here'])).stdout, 'still here\n')
    await count.end()
    assert.equal(count.gaps(), 0)
    await later.delete()
    await sandbox.delete()
  })

  for (const how of ['dead', 'cut off'] as const) {
    test(`with the database ${how}, mutations get 503 with Retry-After, sessions go on, and nothing is lost`, { timeout: LIMIT_MS }, async (context) => {
      const sandbox = await fleet.create()
      const count = await counting(sandbox)
      if (how === 'dead') await fleet.kill('postgres')
      else fleet.partition('postgres')
      const began = count.seen()
      const refused = await createOnce(fleet.api('cp1'))
      assert.equal(refused.status, 503)
      assert.match(refused.retryAfter, /^\d+$/)
      await quietFor(OUTAGE_MS - Math.min(OUTAGE_MS, refused.tookMs))
      assert.ok(count.seen() > began + 50, 'the session goes on')
      context.diagnostic(`refused after ${refused.tookMs} ms`)
      const back = performance.now()
      if (how === 'dead') await fleet.restart('postgres')
      else fleet.heal('postgres')
      const made = await measured(RECOVERY_MS, 'creates working again', () => fleet.create().catch(() => undefined))
      context.diagnostic(`creates work ${Math.round(performance.now() - back)} ms after the database was back`)
      await sandbox.refresh()
      assert.equal(sandbox.status, 'ready')
      assert.equal((await sandbox.exec(['echo', 'here'])).stdout, 'here\n')
      await count.end()
      assert.equal(count.gaps(), 0)
      await made.value.delete()
      await sandbox.delete()
    })
  }
})

describe('a control plane that dies in the middle', () => {
  async function dyingAt(point: string, work: () => Promise<Sandbox>): Promise<{ sandbox: Sandbox; tookMs: number }> {
    // It serves as soon as it listens; a sweep of its own may bring it to the point before anybody asks.
    await fleet.begin('cp1', { SANDGLASS_CRASH_AT: point })
    await measured(RECOVERY_MS, 'it listening', () =>
      fetch(`${fleet.api('cp1').url}/healthz`).then(
        () => true,
        () => (fleet.isDead('cp1') ? true : undefined),
      ),
    )
    const began = performance.now()
    const sandbox = await work()
    const tookMs = Math.round(performance.now() - began)
    await measured(RECOVERY_MS, 'its death at the point', () => (fleet.isDead('cp1') ? true : undefined))
    return { sandbox, tookMs }
  }

  test('between commit and answer: the same key gives the first result, at another', { timeout: LIMIT_MS }, async (context) => {
    const { sandbox, tookMs } = await dyingAt('create.committed', () =>
      Sandbox.create({
        client: fleet.client('cp1', 'cp2'),
        isolation: 'fake',
        idempotencyKey: 'committed',
        resources: { vcpu: 0.25, memoryMb: 256, diskGb: 1 },
      }),
    )
    context.diagnostic(`ready after ${tookMs} ms`)
    const rows = await fleet.sql<{ sandbox_id: string }>(`SELECT id AS sandbox_id FROM sandglass.sandboxes WHERE id = '${sandbox.id}'`)
    assert.equal(rows.length, 1)
    const again = await Sandbox.create({ client, isolation: 'fake', idempotencyKey: 'committed', resources: { vcpu: 0.25, memoryMb: 256, diskGb: 1 } })
    assert.equal(again.id, sandbox.id)
    await sandbox.delete()
  })

  test('after reserving: a successor finds the assignment, and nothing is reserved twice', { timeout: LIMIT_MS }, async (context) => {
    const { sandbox, tookMs } = await dyingAt('place.committed', () => fleet.create({ client: fleet.client('cp1', 'cp2') }))
    context.diagnostic(`ready after ${tookMs} ms`)
    const live = await fleet.sql<{ count: number }>(
      `SELECT count(*)::int FROM sandglass.assignments WHERE sandbox_id = '${sandbox.id}' AND released_at IS NULL`,
    )
    assert.equal(live[0]?.count, 1)
    await sandbox.delete()
    await measured(RECOVERY_MS, 'everything being given back', async () => {
      const reserved: number[] = []
      for await (const host of client.hosts.list()) reserved.push(host.reserved.memory_mb, host.reserved.vcpu)
      return reserved.every((amount) => amount === 0) ? true : undefined
    })
  })
})

test('a gateway that restarts: its clients go on through another, and no output and no exit code is lost', { timeout: LIMIT_MS }, async (context) => {
  const sandbox = await fleet.create()
  const count = await counting(sandbox)
  const late = await sandbox.spawn(['sh', '-c', 'sleep 3; echo done; exit 7'])
  for (const gateway of ['gw1', 'gw2']) {
    const before = count.seen()
    await fleet.kill(gateway)
    const { tookMs } = await measured(RECOVERY_MS, 'the session going on', () => (count.seen() > before + 10 ? true : undefined))
    context.diagnostic(`${gateway} dead: ten more lines within ${tookMs} ms`)
    await fleet.restart(gateway)
  }
  assert.equal(await late.stdout.readText(), 'done\n')
  assert.equal((await late.exit).exitCode, 7)
  await count.end()
  assert.equal(count.gaps(), 0)
  await sandbox.delete()
})
