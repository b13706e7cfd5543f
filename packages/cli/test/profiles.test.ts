import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { chooseConnection, type Given } from '../src/profiles/choose.ts'
import { UsageError } from '../src/usage-error.ts'
import { API_KEY, run } from './command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'sandglass-config-'))
after(() => rmSync(folder, { recursive: true }))

const CONFIG = {
  current: 'work',
  profiles: {
    work: { url: 'https://work.test', api_key: 'sgk_work' },
    home: { url: 'http://home.test:7070', api_key: 'sgk_home' },
    fleet: { url: 'http://a.test:1,http://b.test:2', api_key: 'sgk_fleet' },
  },
}
const nothing: Given = { profile: undefined, url: undefined, apiKey: undefined }
const work = { url: 'https://work.test', apiKey: 'sgk_work' }
const home = { url: 'http://home.test:7070', apiKey: 'sgk_home' }

const CHOICES: readonly (readonly [title: string, given: Partial<Given>, environment: Record<string, string>, chosen: object | RegExp])[] = [
  ['the current profile counts when nothing is said', {}, {}, work],
  ['the environment counts before it', {}, { SANDGLASS_URL: 'http://env.test' }, {}],
  ['a named profile counts before the environment', { profile: 'home' }, { SANDGLASS_URL: 'http://env.test', SANDGLASS_API_KEY: 'sgk_env' }, home],
  ['SANDGLASS_PROFILE names one', {}, { SANDGLASS_PROFILE: 'home' }, home],
  ['--profile counts before SANDGLASS_PROFILE', { profile: 'work' }, { SANDGLASS_PROFILE: 'home' }, work],
  ['options count before a profile', { profile: 'home', apiKey: 'sgk_other' }, {}, { ...home, apiKey: 'sgk_other' }],
  ['both options need no profile', { url: 'http://x.test', apiKey: 'sgk_x' }, { SANDGLASS_PROFILE: 'nope' }, { url: 'http://x.test', apiKey: 'sgk_x' }],
  ['another server is not given the current profile’s key', { url: 'http://x.test' }, {}, { url: 'http://x.test' }],
  ['nor a named profile’s', { url: 'http://x.test', profile: 'work' }, {}, /the key of profile 'work' is for https:\/\/work\.test, not for http:\/\/x\.test/],
  ['the same server is', { url: 'https://work.test/' }, {}, { ...work, url: 'https://work.test/' }],
  ['and so is one of its replicas', { profile: 'fleet', url: 'http://b.test:2' }, {}, { url: 'http://b.test:2', apiKey: 'sgk_fleet' }],
  ['but not a list with a stranger in it', { profile: 'fleet', url: 'http://b.test:2,http://x.test' }, {}, /not for http:\/\/b\.test:2,http:\/\/x\.test/],
  ['a profile that is not there is refused', { profile: 'nope' }, {}, /there is no profile 'nope'; there are work, home, fleet/],
  ['nor is a word of JavaScript one', { profile: 'constructor' }, {}, /there is no profile 'constructor'/],
]
for (const [title, given, environment, expected] of CHOICES) {
  test(title, () => {
    const choose = () => chooseConnection({ ...nothing, ...given }, environment, () => CONFIG)
    if (!(expected instanceof RegExp)) assert.deepEqual(choose(), expected)
    else assert.throws(choose, (error) => error instanceof UsageError && expected.test(error.message))
  })
}

test('profiles are made, chosen, used and forgotten; keys are stored for their owner only, and never shown', async () => {
  await using server = await ScriptedServer.start()
  let key = ''
  server.on('GET', /^\/v1\/templates$/, ({ headers }) => {
    key = headers.authorization ?? ''
    return { status: 200, json: { items: [], next_cursor: null } }
  })
  const env = { XDG_CONFIG_HOME: folder }
  const file = join(folder, 'sandglass/config.json')
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, `${API_KEY}\n`)
  const shown: string[] = []
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(undefined, args, undefined, env)
    shown.push(stdout.toString(), stderr)
    return { code, out: stdout.toString(), stderr }
  }
  assert.match((await cli('config', 'ls')).out, /^no profiles in .*config set PROFILE --url URL --api-key-file FILE\n$/)
  for (const args of [
    ['set', 'here'],
    ['set', 'here', '--url', server.url],
    ['set', '../x', '--url', server.url, '--api-key-file', keyFile],
    ['set', 'here', '--url', 'ftp://x', '--api-key-file', keyFile],
  ])
    assert.equal((await cli('config', ...args)).code, 125, args.join(' '))
  assert.deepEqual(await cli('config', 'set', 'here', '--url', `${server.url}/`, '--api-key-file', keyFile), { code: 0, out: '', stderr: '' })
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal((await cli('config', 'set', 'there', '--url', 'https://there.test', '--api-key-file', keyFile)).code, 0)
  assert.equal((await cli('config', 'set', 'there', '--url', 'https://elsewhere.test')).code, 125, 'the old key is not for a new server')
  assert.match((await cli('config', 'ls')).out, new RegExp(`^ +NAME +URL\\n\\* +here +${server.url}\\n +there +https://there\\.test\\n$`))
  assert.equal((await cli('template', 'ls')).code, 0)
  assert.equal(key, `Bearer ${API_KEY}`)
  assert.equal((await cli('config', 'use', 'nope')).code, 125)
  assert.equal((await cli('config', 'use', 'there')).code, 0)
  assert.deepEqual(JSON.parse((await cli('config', 'get', '--json')).out), { name: 'there', url: 'https://there.test', current: true })
  assert.equal((await cli('template', 'ls', '--profile', 'here')).code, 0)
  assert.equal((await cli('config', 'rm', 'there')).code, 0)
  assert.match((await cli('template', 'ls')).stderr, /no Sandglass is known here/)
  assert.equal((await cli('config', 'use', '--none')).code, 0)
  assert.equal(readFileSync(file, 'utf8').includes(API_KEY), true)
  chmodSync(file, 0o640)
  assert.match((await cli('config', 'ls')).stderr, /can be read by others; type: chmod 600/)
  chmodSync(file, 0o600)
  writeFileSync(file, '{')
  assert.match((await cli('config', 'ls')).stderr, /config\.json cannot be read/)
  assert.equal(shown.join('').includes(API_KEY), false)
})
