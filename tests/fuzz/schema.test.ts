/**
 * The public API by its own document: requests that fit it and requests that do not, of every operation but endless streams, and each answer must be one
 * that the document names, of the form that it names, and no failure of the server's.
 *
 *   SANDGLASS_FUZZ_SEED=… SANDGLASS_FUZZ_EXAMPLES=200 ./sandglass test fuzz/schema
 */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { test } from 'node:test'
import { Sandbox } from '@sandglass/sdk'
import { mustTurnRed } from '../e2e/case.ts'
import { afterTests, ownInstallation } from '../e2e/file-installation.ts'
import { randomOf } from '../failure/seed.ts'
import { SEED, wholeNumber } from './rounds.ts'
import { type Attack, attack } from './schema/schemathesis.ts'
import { Witness } from './witness.ts'

const TEST_LIMIT_MS = 600_000
const ATTACK_MS = 400_000
const EXAMPLES = wholeNumber('SANDGLASS_FUZZ_EXAMPLES') ?? 12
const SHOWN_CHARACTERS = 6_000

/** Room for few, so that most of what is asked for is only accepted. */
const ROOM = {
  SANDGLASS_CAPACITY_MEMORY_MB: '2048',
  SANDGLASS_POOL_FLOOR: '0',
  SANDGLASS_RATE_KEY_REQUESTS: '1000000',
  SANDGLASS_RATE_TENANT_REQUESTS: '1000000',
}

/** Served by the gateway, under a path of a sandbox. */
const GATEWAY = '^/v1/sandboxes/\\{id\\}/(exec|processes|files|sessions|usage)'
/** Answers without an end: they have tests of their own. */
const ENDLESS = '^/v1/events$|/files/watch$|/terminal$'

/** Cordons, drains and removes the host that all run on. */
const HOSTS = '^/v1/hosts/\\{id\\}'

/** Ends the very key that asks. */
const REVOKES = '^/v1/api-keys/\\{id\\}$'

const seed = randomOf(SEED, 'schema').integer(2 ** 31)

/** @returns how many requests were made */
async function holds(what: Omit<Attack, 'seed' | 'examples' | 'timeoutMs'>): Promise<number> {
  const { exitCode, output } = await attack({ ...what, seed, examples: EXAMPLES, timeoutMs: ATTACK_MS })
  assert.equal(
    exitCode,
    0,
    `the document holds; once more: SANDGLASS_FUZZ_SEED=${SEED} SANDGLASS_FUZZ_EXAMPLES=${EXAMPLES} ./sandglass test fuzz/schema\n${excerpt(output)}`,
  )
  const cases = Number(/(\d[\d,]*) generated/.exec(output)?.[1]?.replaceAll(',', ''))
  assert.ok(cases > 0, `requests were made: ${excerpt(output)}`)
  return cases
}

/** From the first failure on. */
function excerpt(output: string): string {
  const begin = output.search(/^=+ (FAILURES|ERRORS) =+$/m)
  return begin === -1 ? output.slice(-SHOWN_CHARACTERS) : output.slice(begin, begin + SHOWN_CHARACTERS)
}

test('the API answers as its document says, whatever is asked', { timeout: TEST_LIMIT_MS }, async (context) => {
  const installation = await ownInstallation(() => ROOM)
  const client = installation.client()
  const deleteAll = async () => {
    for (const sandbox of await installation.sandboxes()) await sandbox.delete()
  }
  afterTests(deleteAll)
  const document = `${installation.apiUrl}/openapi.json`
  const witness = new Witness(installation)
  const common = { document, apiKey: installation.operatorKey }
  const api = await holds({ ...common, baseUrl: installation.apiUrl, exclude: `${GATEWAY}|${ENDLESS}|${HOSTS}|${REVOKES}` })
  // Chance finds ids in answers and ends what they name: what has to stay is made afterwards, and keys end in a tenant of their own.
  const { key } = await client.apiKeys.create({ name: 'fuzz', role: 'owner', tenant: 'fuzz' })
  const keys = await holds({ ...common, apiKey: key, baseUrl: installation.apiUrl, include: REVOKES })
  // What chance has made holds the room, or stands in line for it.
  await deleteAll()
  const sandbox = await Sandbox.create({ client, ttlSeconds: 3_600 })
  const { id: process } = await sandbox.start(['sleep', '3600'])
  const gateway = await holds({
    ...common,
    baseUrl: sandbox.resource.gateway_url,
    include: GATEWAY,
    exclude: ENDLESS,
    parameters: { 'path.id': sandbox.id, 'path.process_id': process },
  })
  assert.equal((await sandbox.exec(['echo', 'well'])).stdout, 'well\n', 'the key and the sandbox are those that were asked with')
  await witness.unharmed([sandbox])
  await deleteAll()
  const hosts = await holds({ ...common, baseUrl: installation.apiUrl, include: `^/v1/hosts$|${HOSTS}` })
  context.diagnostic(`${api + keys + hosts} requests to the API, ${gateway} to the gateway, seed ${SEED}`)
})

/** A server that answers everything alike. */
async function against(listener: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  try {
    await use(`http://127.0.0.1:${address.port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

const DEFECTS: Readonly<Record<string, { readonly answer: RequestListener; readonly says: RegExp }>> = {
  'a server fails': {
    answer: (_, response) => void response.writeHead(500, { 'content-type': 'application/problem+json' }).end('{}'),
    says: /Server error/,
  },
  'an answer has another form': {
    answer: (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":7}'),
    says: /Response violates schema/,
  },
  'an answer has a status that is not named': {
    answer: (_, response) => void response.writeHead(418, { 'content-type': 'application/problem+json' }).end('{}'),
    says: /Undocumented status code/,
  },
}

for (const [name, { answer, says }] of Object.entries(DEFECTS)) {
  test(`turns red when ${name}`, { timeout: TEST_LIMIT_MS }, async () => {
    const document = new URL('../../openapi/openapi.json', import.meta.url).pathname
    await against(answer, (baseUrl) =>
      mustTurnRed(name, says, async () => void (await holds({ document, baseUrl, apiKey: `sgk_${'a'.repeat(43)}`, include: '^/v1/templates$' }))),
    )
  })
}
