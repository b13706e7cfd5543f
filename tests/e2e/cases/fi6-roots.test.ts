/** FI6: a removal of "" or "/" removed too much. */
import assert from 'node:assert/strict'
import type { ErrorCode } from '@sandglass/contract'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxedWithHttp } from '../fixture.ts'
import { utf8 } from '../subject/bytes.ts'
import { refused } from '../subject/coded.ts'
import { ask } from '../subject/inside.ts'
import type { RawFiles } from '../subject/raw-files.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

type Subject = { readonly sandbox: Sandboxed; readonly ways: Readonly<Record<'sdk' | 'http', RawFiles>> }

const NO_PLACE = ['', '.', '..', './', 'relative/path', '\0', '/tmp/\0x']
const ROOTS = ['/', '//', '/.', '/./', '/..', '/../..', '/tmp/..', '///']
const PROTECTED = ['/proc', '/proc/', '/sys', '/dev', '/run/sandglass', '/run/sandglass/agent', '/dev/null', '/dev/zero', '/dev/stdin']
const DEVICES = ['/dev/null', '/dev/zero']
const REFUSALS: readonly ErrorCode[] = ['path_invalid', 'invalid_request']

/** Sizes and names of what must survive, as the sandbox sees it. */
const WITNESS =
  'ls -a / /tmp/canary /home; wc -c /etc/passwd /bin/sh /tmp/canary/file; stat -c "%n %F" /dev/null /dev/zero /dev/stdin; ls /proc/self /run/sandglass >/dev/null && echo alive'

async function refusesAll(sandbox: Sandboxed, files: RawFiles, way: string, witness: string): Promise<void> {
  const untouched = async (what: string) => assert.equal(await ask(sandbox, { shell: WITNESS }), witness, `everything is still there after ${what}.`)
  for (const path of [...NO_PLACE, ...ROOTS, ...PROTECTED]) {
    for (const recursive of [false, true]) {
      const what = `removing ${JSON.stringify(path)}${recursive ? ' with all below' : ''} over ${way}`
      await refused(what, REFUSALS, files.remove(path, { recursive }))
      await untouched(what)
    }
    await refused(`moving ${JSON.stringify(path)} over ${way}`, [...REFUSALS, 'permission_denied', 'file_exists'], files.move(path, '/tmp/moved'))
    await untouched(`moving ${JSON.stringify(path)} over ${way}`)
  }
  for (const path of [...NO_PLACE, ...ROOTS]) {
    await refused(
      `moving a file to ${JSON.stringify(path)} over ${way}`,
      [...REFUSALS, 'is_a_directory', 'file_exists', 'directory_not_empty', 'permission_denied'],
      files.move('/tmp/canary/file', path),
    )
    await refused(`writing to ${JSON.stringify(path)} over ${way}`, [...REFUSALS, 'is_a_directory'], files.write(path, utf8('x')))
  }
  for (const path of DEVICES) {
    await refused(`moving a file to ${path} over ${way}`, 'path_invalid', files.move('/tmp/canary/file', path))
    await refused(`writing to ${path} over ${way}`, 'not_a_regular_file', files.write(path, utf8('x')))
  }
  await untouched(`moves and writes over ${way}`)
  for (const path of NO_PLACE) await refused(`listing ${JSON.stringify(path)} over ${way}`, REFUSALS, files.list(path))
  for (const path of ROOTS) {
    const names = (await must(`listing ${path} over ${way}`, files.list(path))).map((entry) => Buffer.from(entry.name).toString('utf8'))
    assert.ok(names.includes('etc') && names.includes('tmp'), `the list of ${path} over ${way} is that of the root.`)
  }
}

/** Does a harm of its own and reports success. */
const harm =
  (command: string, applies: (path: string) => boolean) =>
  (subject: Subject): Subject => {
    const wrap = (files: RawFiles): RawFiles => ({
      ...files,
      async remove(path, options) {
        if (!applies(String(path))) return files.remove(path, options)
        await subject.sandbox.exec({ argv: ['sh', '-c', command] })
        return files.remove(path, options)
      },
    })
    return { ...subject, ways: { sdk: wrap(subject.ways.sdk), http: wrap(subject.ways.http) } }
  }

defineCase<Subject>({
  id: 'FI6',
  title: 'removing, moving and listing "", "/", "." and protected places takes nothing away',
  subject: sandboxedWithHttp,
  async run({ sandbox, ways }) {
    await ask(sandbox, { shell: 'mkdir /tmp/canary && echo x > /tmp/canary/file' })
    const witness = await ask(sandbox, { shell: WITNESS })
    await refusesAll(sandbox, ways.sdk, 'sdk', witness)
    await refusesAll(sandbox, ways.http, 'http', witness)
  },
  defects: {
    'removing "" removes the working directory': {
      breaks: harm('rm -rf /tmp/canary', (path) => path === ''),
      says: /exits 0|everything is still there after removing ""/,
    },
    'removing "/" empties it before it is refused': {
      breaks: harm('rm -rf /home', (path) => path === '/'),
      says: /exits 0|everything is still there after removing "\/"/,
    },
    'removing "/" is taken as done': {
      breaks: (subject) => {
        const wrap = (files: RawFiles): RawFiles => ({ ...files, remove: async (path, options) => (path === '/' ? undefined : files.remove(path, options)) })
        return { ...subject, ways: { sdk: wrap(subject.ways.sdk), http: wrap(subject.ways.http) } }
      },
      says: /removing "\/" over sdk succeeded/,
    },
    'a list of "" is a list of some place': {
      breaks: (subject) => {
        const wrap = (files: RawFiles): RawFiles => ({ ...files, list: (path) => files.list(path === '' ? '/tmp' : path) })
        return { ...subject, ways: { sdk: wrap(subject.ways.sdk), http: wrap(subject.ways.http) } }
      },
      says: /listing "" over sdk succeeded/,
    },
  },
})
