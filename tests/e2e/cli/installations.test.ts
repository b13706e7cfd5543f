/** Installations: a second start, two side by side, down that leaves sandboxes, down that ends them. */
import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { until } from '../bounds.ts'
import { type Installation, type Owned, startInstallation } from '../installation.ts'
import { allSentries, sentriesOf, servingSentries } from '../sentries.ts'
import { text } from '../subject/bytes.ts'
import type { Platform } from '../subject/platform.ts'
import { sdkPlatform } from '../subject/sdk-platform.ts'

let first: Owned
let second: Owned
before(async () => {
  first = await startInstallation()
  second = await startInstallation()
})
after(async () => {
  await first?.stop()
  await second?.stop()
})

const platformOf = (installation: Installation): Platform => sdkPlatform(installation.client(), installation.operatorKey)

const ids = async (installation: Installation): Promise<string[]> => (await installation.sandboxes()).map(({ id }) => id).sort()

test('keys and profile are readable by their owner only', () => {
  for (const name of ['admin.key', 'profile.json']) assert.equal(statSync(join(first.installation.home, name)).mode & 0o777, 0o600, name)
})

test('a second up says that it runs already and changes nothing', async () => {
  const key = first.installation.operatorKey
  const began = performance.now()
  const { code, stdout, stderr } = await first.installation.cli(['up', '--detach'])
  assert.equal(code, 0, stderr)
  assert.match(`${stdout.toString('utf8')}${stderr}`, /already running|runs already|is running/i)
  assert.ok(performance.now() - began < 10_000, 'within ten seconds')
  assert.equal(first.installation.operatorKey, key)
})

test('two installations live side by side and know nothing of each other', async () => {
  const [mine, theirs] = [platformOf(first.installation), platformOf(second.installation)]
  const one = await mine.create({ name: 'same-name', vcpu: 0.1, memoryMb: 128 })
  const other = await theirs.create({ name: 'same-name', vcpu: 0.1, memoryMb: 128 })
  assert.deepEqual([await ids(first.installation), await ids(second.installation)], [[one.id], [other.id]])
  assert.deepEqual([servingSentries(first.installation.home).length, servingSentries(second.installation.home).length], [1, 1])
  const foreign = await first.installation.cli(['ls'], {
    env: { SANDGLASS_URL: second.installation.apiUrl, SANDGLASS_API_KEY: first.installation.operatorKey },
  })
  assert.match(foreign.stderr, /\[unauthenticated\]/)
  await mine.remove(one.id)
  assert.equal(text((await (await theirs.enter(other.id)).exec({ argv: ['echo', 'still here'] })).stdout), 'still here\n')
  await theirs.remove(other.id)
})

test('down leaves sandboxes running; up finds them within ten seconds; down --sandboxes ends them', async () => {
  const { installation } = second
  const platform = platformOf(installation)
  const kept = await platform.create({ name: 'kept', vcpu: 0.1, memoryMb: 128 })
  const [sentry] = sentriesOf(installation.home, kept.id)
  assert.ok(sentry !== undefined)
  const sandbox = await platform.enter(kept.id)
  const process = await sandbox.spawn({ argv: ['sleep', '1000'] })
  await installation.ok(['down'])
  assert.deepEqual(
    servingSentries(installation.home).map(({ pid }) => pid),
    [sentry.pid],
    'the same sentry runs on while the installation is down.',
  )
  const down = await installation.cli(['status'])
  assert.notEqual(down.code, 0, 'status of what is down is not success')
  const began = performance.now()
  await installation.ok(['up', '--detach'])
  const tookMs = performance.now() - began
  assert.ok(tookMs < 10_000, `the second start took ${Math.round(tookMs)} ms`)
  assert.deepEqual(await ids(installation), [kept.id])
  await until(10_000, 'it is ready', async () => (await platform.get(kept.id)).status === 'ready')
  const again = await platform.enter(kept.id)
  assert.equal((await again.processes()).find(({ id }) => id === process.id)?.state, 'running')
  assert.deepEqual(
    servingSentries(installation.home).map(({ pid }) => pid),
    [sentry.pid],
  )
  await installation.ok(['down', '--sandboxes'])
  assert.deepEqual(allSentries(installation.home), [], 'down --sandboxes ends every sandbox, and what pools hold.')
  assert.equal(existsSync(join(installation.home, 'admin.key')), true)
  await installation.ok(['up', '--detach'])
  assert.deepEqual(await ids(installation), [], 'ended sandboxes are not listed.')
})
