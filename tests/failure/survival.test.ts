/** Crashes of more than one process, of the runtime itself, and of the host agent while orders are on their way. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { NoAnswer } from './api.ts'
import { CarefulClient, CONTENT_PATH } from './careful-client.ts'
import { InstallationUnderTest } from './installation-under-test.ts'
import { Ledger } from './ledger.ts'
import { Load } from './load.ts'
import { until } from './persist.ts'
import type { Resident } from './resident.ts'
import { killRole, livingRole, ROLES, type Role, replaced } from './roles.ts'
import { TerminalSession } from './terminal-session.ts'
import { convergenceFaults, faultsAfterAll, faultsAfterCrash } from './verify.ts'

const RESTART_LIMIT_MS = 60_000
const TEST_LIMIT_MS = 5 * 60_000
const SEEN_LIMIT_MS = 30_000
const FAST_MS = 2_000
const MANY = 20
const SMALL = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }

const installation = await InstallationUnderTest.start()
after(() => installation[Symbol.asyncDispose]())

const clientFor = (run: string): CarefulClient => new CarefulClient(installation.api, new Ledger(), `${run}-${process.pid}`)

/** Sends a signal to the process of a role. */
function signal(role: Role | 'supervisor', name: 'SIGSTOP' | 'SIGCONT'): void {
  const living = livingRole(installation.home, role)
  assert.ok(living !== undefined, `${role} lives`)
  process.kill(living.pid, name)
}

/** Holds a process still until the end of the block. */
function paused(role: Role | 'supervisor'): Disposable {
  signal(role, 'SIGSTOP')
  return { [Symbol.dispose]: () => signal(role, 'SIGCONT') }
}

async function survives(run: string, crash: () => Promise<void>): Promise<void> {
  const client = clientFor(run)
  {
    await using load = await Load.start(client, run, { residents: 2, workers: 1 })
    await crash()
    await load.pause()
    assert.deepEqual(await faultsAfterCrash(installation, client, load), [])
    load.resume()
  }
  assert.deepEqual(await faultsAfterAll(installation, client), [])
}

describe('crashes of the whole', () => {
  test('kill -9 of the supervisor, then up: sandboxes, processes and terminals live on', { timeout: TEST_LIMIT_MS }, () =>
    survives('supervisor', async () => {
      killRole(installation.home, 'supervisor')
      await installation.up()
    }),
  )

  test('kill -9 of everything at once, then up', { timeout: TEST_LIMIT_MS }, () =>
    survives('everything', async () => {
      killRole(installation.home, 'supervisor')
      for (const role of ROLES) if (livingRole(installation.home, role) !== undefined) killRole(installation.home, role)
      await installation.up()
    }),
  )

  test(`LI2 kill -9 of the host agent while ${MANY} sandboxes run: same ids, terminals alive`, { timeout: TEST_LIMIT_MS }, async () => {
    const client = clientFor('many')
    {
      await using load = await Load.start(client, 'many', { residents: MANY, workers: 0, resources: SMALL })
      const before = [...client.ledger.creates.values()].sort()
      assert.equal(before.length, MANY)
      await replaced(installation.home, 'host-agent', killRole(installation.home, 'host-agent'), RESTART_LIMIT_MS)
      assert.deepEqual(await faultsAfterCrash(installation, client, load), [])
      const listed = await client.persist('listing', () => installation.api.listSandboxes('status=ready'))
      assert.deepEqual(listed.map(({ id }) => id).sort(), before)
    }
    assert.deepEqual(await faultsAfterAll(installation, client), [])
  })
})

describe('crashes behind the agent’s back, and orders that come late', () => {
  test('a delete while the host agent is down completes after it is back', { timeout: TEST_LIMIT_MS }, async () => {
    const client = clientFor('down')
    const where = await client.create(`${client.run}-one`)
    {
      using _ = paused('supervisor')
      killRole(installation.home, 'host-agent')
      client.ledger.deleteAsked.add(where.id)
      assert.equal(await installation.api.deleteSandbox(where.id, 1), 202, 'accepted, not done')
      client.ledger.deleted(where.id)
      const { desired, status } = await installation.api.getSandbox(where.id)
      assert.deepEqual({ desired, status }, { desired: 'deleted', status: 'terminating' })
      const [host] = await installation.api.listHosts()
      assert.ok(host !== undefined)
      assert.equal(host.reserved.memory_mb - host.pool.memory_mb, 256, 'nothing is released without proof')
    }
    assert.deepEqual(await faultsAfterAll(installation, client), [])
  })

  test('a start ticket that arrives after the delete resurrects nothing', { timeout: TEST_LIMIT_MS }, async () => {
    const client = clientFor('late')
    const key = `${client.run}-one`
    {
      // The ticket lies in the connection's buffers; the agent reads it when everybody else has moved on.
      using _ = paused('host-agent')
      client.ledger.asked.add(key)
      const sandbox = await installation.api.createSandbox(key, { metadata: { load: client.run, key } }, 0)
      client.ledger.created(key, sandbox.id)
      await until(SEEN_LIMIT_MS, 'the placement', async () => ((await installation.api.getSandbox(sandbox.id)).generation > 0 ? true : undefined))
      client.ledger.deleteAsked.add(sandbox.id)
      await installation.api.deleteSandbox(sandbox.id, 0)
      client.ledger.deleted(sandbox.id)
    }
    assert.deepEqual(await faultsAfterAll(installation, client), [])
  })

  test('a host agent that dies with a ticket unread is told again', { timeout: TEST_LIMIT_MS }, async () => {
    const client = clientFor('unread')
    const key = `${client.run}-one`
    signal('host-agent', 'SIGSTOP')
    client.ledger.asked.add(key)
    const sandbox = await installation.api.createSandbox(key, { metadata: { load: client.run, key } }, 0)
    client.ledger.created(key, sandbox.id)
    await until(SEEN_LIMIT_MS, 'the placement', async () => ((await installation.api.getSandbox(sandbox.id)).generation > 0 ? true : undefined))
    await replaced(installation.home, 'host-agent', killRole(installation.home, 'host-agent'), RESTART_LIMIT_MS)
    await client.persist('becoming ready', async () => {
      const now = await installation.api.getSandbox(sandbox.id)
      if (now.status !== 'ready') throw new NoAnswer(`it is ${now.status}`)
    })
    await client.delete(sandbox.id)
    assert.deepEqual(await faultsAfterAll(installation, client), [])
  })
})

describe('the verification itself, against a product that is made to break its word', () => {
  async function turnsRed(run: string, breakWord: (client: CarefulClient, resident: Resident) => Promise<void>, says: RegExp): Promise<void> {
    const client = clientFor(run)
    await using load = await Load.start(client, run, { residents: 1, workers: 0 })
    const [resident] = load.residents
    assert.ok(resident !== undefined)
    await resident.work()
    await client.write(resident.where, CONTENT_PATH, new Uint8Array(10))
    await client.execute(resident.where, `${run}-once`, new Uint8Array(10))
    assert.deepEqual(await faultsAfterCrash(installation, client, load), [], 'all is well before')
    await breakWord(client, resident)
    const lines = [...(await resident.counterFaults()), ...(await resident.shellFaults()), ...(await client.contentFaults(resident.where))]
    assert.match(lines.join('\n'), says)
  }

  test('turns red when a process does not live on', { timeout: TEST_LIMIT_MS }, () =>
    turnsRed('process', ({ api }, { where }) => api.killProcess(where, 'key:counter'), /^the counter of \S+ is exited/),
  )

  test('turns red when a shell forgets', { timeout: TEST_LIMIT_MS }, () =>
    turnsRed(
      'shell',
      async ({ api }, { where }) => {
        using other = await TerminalSession.open(api, where, 'id=key:shell')
        other.type('MARK=another')
        await other.ask('$MARK', 'told', SEEN_LIMIT_MS)
      },
      /^the shell of \S+ remembers "another:/m,
    ),
  )

  test('turns red when a file holds something else', { timeout: TEST_LIMIT_MS }, () =>
    turnsRed('file', ({ api }, { where }) => api.writeFile(where, '/root/kept-0', new Uint8Array(3)), /^\/root\/kept-0 of \S+ holds/),
  )

  test('turns red when a command happens twice', { timeout: TEST_LIMIT_MS }, () =>
    turnsRed(
      'twice',
      async ({ api }, { where }) => void (await api.exec(where, { shell: 'echo twice-once >> /root/effects' })),
      /^a command of \S+ happened twice/m,
    ),
  )

  test('turns red when a sandbox is gone that nobody deleted', { timeout: TEST_LIMIT_MS }, async () => {
    const client = clientFor('gone')
    const where = await client.create(`${client.run}-one`)
    await installation.api.deleteSandbox(where.id, 10)
    assert.match((await convergenceFaults(installation, client, FAST_MS)).join('\n'), /was never deleted and is terminated/)
  })
})
