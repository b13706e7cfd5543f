/** The pages that people read: an anchor for everything that is linked to, well-formed, escaped, and sufficient by themselves. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { ERRORS, PUBLIC_ROUTES } from '@sandglass/contract'
import { referencePage } from '../src/api/reference-page.ts'
import { type Rig, startRig, usePostgres } from './harness.ts'

const VOID = new Set(['meta', 'br'])

/** Tags are closed in their order, attributes are quoted, and no `&` or `<` stands for itself. @returns every `id` */
function checkedIds(page: string): string[] {
  const ids: string[] = []
  const open: string[] = []
  assert.ok(page.startsWith('<!doctype html>\n'))
  const rest = page.slice('<!doctype html>'.length).replace(/<style>[^<]*<\/style>/, '')
  for (const [piece, tag, attributes, text] of rest.matchAll(/<([^<>]*?)((?:\s[a-z-]+="[^"<>]*")*)>|([^<>]+)|[<>]/g)) {
    if (text !== undefined) assert.doesNotMatch(text, /&(?!#\d+;)/, text)
    else if (tag?.startsWith('/')) assert.equal(open.pop(), tag.slice(1), piece)
    else {
      assert.match(tag ?? '', /^[a-z][a-z0-9]*$/, piece)
      if (!VOID.has(tag ?? '')) open.push(tag ?? '')
      const id = /\sid="([^"]*)"/.exec(attributes ?? '')?.[1]
      if (id !== undefined) ids.push(id)
    }
  }
  assert.deepEqual(open, [])
  assert.equal(new Set(ids).size, ids.length, 'an id twice')
  return ids
}

const linksOf = (page: string): string[] => [...page.matchAll(/\s(?:href|src|action)="([^"]*)"/g)].map((match) => match[1] ?? '')

describe('pages', () => {
  const postgres = usePostgres()
  let rig: Rig
  let reference: string
  let errors: string
  before(async () => {
    rig = await startRig(postgres.current)
    const get = async (path: string): Promise<string> => (await rig.call<string>('GET', path, { key: '' })).body
    reference = await get('/docs')
    errors = await get('/docs/errors')
  })
  after(async () => {
    await rig[Symbol.asyncDispose]()
  })

  test('every operation and every error has an anchor', () => {
    const [operations, codes] = [checkedIds(reference), checkedIds(errors)]
    for (const name of Object.keys(PUBLIC_ROUTES)) assert.ok(operations.includes(name), name)
    for (const code of Object.keys(ERRORS)) assert.ok(codes.includes(code), code)
  })

  test('every link leads somewhere on this server, and the type of a problem is one of them', async () => {
    const targets = new Map([
      ['/docs', new Set(checkedIds(reference))],
      ['/docs/errors', new Set(checkedIds(errors))],
    ])
    for (const [from, page] of [
      ['/docs', reference],
      ['/docs/errors', errors],
    ] as const) {
      for (const link of linksOf(page)) {
        if (link === '/openapi.json') continue
        const [path, anchor] = link.split('#')
        const ids = targets.get(path === '' || path === undefined ? from : path)
        assert.ok(ids !== undefined && (anchor === undefined || ids.has(anchor)), link)
      }
    }
    const [path, anchor] = ((await rig.call('GET', '/v1/sandboxes/none')).problem?.type ?? '').split('#')
    assert.equal(targets.get(path ?? '')?.has(anchor ?? ''), true)
  })

  test('works without scripts and asks nobody for anything: the header allows its one style and no more', async () => {
    for (const [path, page] of Object.entries({ '/docs': reference, '/docs/errors': errors })) {
      const { headers } = await rig.call('GET', path, { key: '' })
      const style = /<style>([^<]*)<\/style>/.exec(page)?.[1] ?? ''
      const hash = createHash('sha256').update(style).digest('base64')
      const policy = headers.get('content-security-policy') ?? ''
      assert.ok(policy.startsWith(`default-src 'none'; style-src 'sha256-${hash}';`), policy)
      assert.doesNotMatch(page, /<script|\sstyle=|\son\w+=|https?:|url\(|@import/i)
      assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    }
  })
})

test('whatever the document says is text on the page', () => {
  const hostile = `<script>alert("x")</script>&'"\`<b>\``
  const page = referencePage(
    JSON.stringify({
      paths: {
        [`/v1/${hostile}`]: {
          get: {
            operationId: hostile,
            summary: hostile,
            tags: ['control-plane'],
            'x-sandglass-role': hostile,
            parameters: [{ name: hostile, in: hostile, required: true, description: hostile, schema: { enum: [hostile] } }],
            requestBody: { content: { [hostile]: { schema: { $ref: hostile } } } },
            responses: {
              [hostile]: {
                description: hostile,
                content: { 'application/json': { schema: { type: hostile, properties: { [hostile]: { description: hostile } } } } },
              },
            },
          },
        },
      },
      components: { schemas: { [hostile]: { description: hostile } } },
    }),
  )
  checkedIds(page)
  assert.doesNotMatch(page, /<script|<b>/)
})
