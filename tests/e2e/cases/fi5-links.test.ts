/** FI5: a link leads a write out of its root; archives that reach outside the directory they are unpacked in. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { must, within } from '../bounds.ts'
import { type Defect, defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { patterned, text, utf8 } from '../subject/bytes.ts'
import { refused } from '../subject/coded.ts'
import { ask } from '../subject/inside.ts'
import type { Files, Sandboxed } from '../subject/sandboxed.ts'
import { type TarEntry, tarOf } from '../subject/tar.ts'

const CONTENT = utf8('from outside\n')

const HOSTILE: readonly { readonly what: string; readonly entries: (mark: string) => readonly TarEntry[] }[] = [
  { what: 'a name with ..', entries: (mark) => [{ name: `../${mark}`, content: CONTENT }] },
  { what: 'a name with .. inside', entries: (mark) => [{ name: `a/../../${mark}`, content: CONTENT }] },
  { what: 'an absolute name', entries: (mark) => [{ name: `/tmp/${mark}`, content: CONTENT }] },
  {
    what: 'a file below a link that leads out',
    entries: (mark) => [
      { name: 'out', type: '2', target: '/tmp' },
      { name: `out/${mark}`, content: CONTENT },
    ],
  },
  {
    what: 'a file below a relative link that leads out',
    entries: (mark) => [
      { name: 'out', type: '2', target: '..' },
      { name: `out/${mark}`, content: CONTENT },
    ],
  },
  {
    what: 'a directory below a link that leads out',
    entries: (mark) => [
      { name: 'out', type: '2', target: '/tmp' },
      { name: `out/${mark}`, type: '5' },
    ],
  },
  { what: 'a hard link to a file outside', entries: () => [{ name: 'shadow', type: '1', target: '/etc/shadow' }] },
  { what: 'a hard link with .. in its target', entries: () => [{ name: 'shadow', type: '1', target: '../../etc/shadow' }] },
  { what: 'a character device', entries: () => [{ name: 'memory', type: '3' }] },
  { what: 'a block device', entries: () => [{ name: 'disk', type: '4' }] },
  { what: 'a FIFO', entries: () => [{ name: 'pipe', type: '6' }] },
]

async function links(sandbox: Sandboxed): Promise<void> {
  const mark = `sandglass-${randomBytes(6).toString('hex')}`
  await ask(sandbox, {
    argv: [
      'sh',
      '-c',
      'mkdir -p /tmp/root /tmp/open && chmod 777 /tmp/root /tmp/open && cd /tmp/root && ln -s /etc link && ln -s /tmp/open/later dangling && ln -s loop loop',
    ],
  })
  await must('a write below a link', sandbox.files.write(`/tmp/root/link/${mark}`, CONTENT))
  assert.equal(existsSync(`/etc/${mark}`), false, 'a link inside never leads to this machine.')
  assert.equal(await ask(sandbox, { argv: ['cat', `/etc/${mark}`] }), text(CONTENT), "the link is the sandbox's own")
  await refused('a write below a link as a user who may not', 'permission_denied', sandbox.files.write('/tmp/root/link/denied', CONTENT, { user: 'nobody' }))
  assert.equal(await ask(sandbox, { shell: 'ls -d /etc/denied 2>/dev/null || echo none' }), 'none\n', 'nothing was written where the user may not write.')
  await must('a write through a dangling link', sandbox.files.write('/tmp/root/dangling', CONTENT, { user: 'nobody' }))
  assert.equal(await ask(sandbox, { argv: ['cat', '/tmp/open/later'] }), text(CONTENT), 'the write went where the link points, inside')
  await assert.rejects(within(30_000, 'the refusal of a loop of links', sandbox.files.write('/tmp/root/loop', CONTENT)), 'a loop of links is refused')
  await sandbox.files.remove('/tmp/root/link')
  assert.equal(await ask(sandbox, { argv: ['cat', `/etc/${mark}`] }), text(CONTENT), 'removing a link leaves what it points to.')
  await ask(sandbox, { argv: ['ln', '-s', '/tmp/open', '/tmp/root/tree'] })
  await sandbox.files.remove('/tmp/root', { recursive: true })
  assert.equal(await ask(sandbox, { argv: ['cat', '/tmp/open/later'] }), text(CONTENT), 'removing a tree never follows its links.')
}

/** A directory that becomes a link while an upload into it is under way. */
async function swapped(sandbox: Sandboxed): Promise<void> {
  await ask(sandbox, { argv: ['sh', '-c', 'mkdir -p /tmp/swap/d && chmod -R 777 /tmp/swap'] })
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield patterned(300_000, 1)
    await ask(sandbox, { argv: ['sh', '-c', 'mv /tmp/swap/d /tmp/swap/moved && ln -s /etc /tmp/swap/d'] })
    yield patterned(300_000, 2)
  }
  await within(30_000, 'an upload into a directory that is swapped', sandbox.files.write('/tmp/swap/d/swapped-file', slow(), { user: 'nobody' })).catch(
    (error: unknown) => {
      if (error instanceof assert.AssertionError) throw error
    },
  )
  assert.equal(await ask(sandbox, { shell: 'ls -d /etc/swapped-file 2>/dev/null || echo none' }), 'none\n', 'the upload did not follow the swapped link.')
  assert.equal(existsSync('/etc/swapped-file'), false)
}

async function archives(sandbox: Sandboxed): Promise<void> {
  for (const { what, entries } of HOSTILE) {
    const mark = `mark-${randomBytes(6).toString('hex')}`
    const hostile = tarOf([{ name: 'first', content: CONTENT }, ...entries(mark)])
    await refused(`an archive with ${what}`, 'archive_invalid', sandbox.files.unpack('/tmp/unpacked/here', hostile))
    const found = await ask(sandbox, {
      shell: `find /tmp /etc -name '${mark}' 2>/dev/null; find /tmp/unpacked \\( -type b -o -type c -o -type p -o -name shadow \\) 2>/dev/null || true`,
    })
    assert.equal(found, '', `nothing came out of an archive with ${what}.`)
    await sandbox.files.remove('/tmp/unpacked', { recursive: true })
  }
  const kept = tarOf([
    { name: './', type: '5', mode: 0o755 },
    { name: 'a/b/file', content: CONTENT, mode: 0o4755 },
    { name: 'a/link', type: '2', target: 'b/file' },
    { name: 'a/far', type: '2', target: '/etc/hostname' },
    { name: 'a/same', type: '1', target: 'a/b/file' },
  ])
  const { entries } = await must('an archive with links inside', sandbox.files.unpack('/tmp/good', kept))
  assert.equal(entries, 5, 'every entry is counted')
  const seen = await ask(sandbox, { shell: 'cd /tmp/good/a && cat link same && readlink link far && stat -c %a b/file' })
  assert.equal(seen, `${text(CONTENT)}${text(CONTENT)}b/file\n/etc/hostname\n755\n`, 'links inside are kept as they are, and no setuid bit survives.')
}

/** Unpacks as careless code does, and says that all went well. */
function careless(flags: string): Defect<Sandboxed>['breaks'] {
  return (real) => {
    const unpack: Files['unpack'] = async (path, tar) => {
      await real.files.write('/var/careless.tar', tar)
      await real.exec({ argv: ['sh', '-c', `mkdir -p "$1" && tar -x ${flags} -f /var/careless.tar -C "$1"`, 'sh', String(path)] })
      return { entries: 5 }
    }
    return { ...real, files: { ...real.files, unpack } }
  }
}

defineCase<Sandboxed>({
  id: 'FI5',
  title: 'links and archives lead nowhere that they should not',
  subject: sandboxed,
  async run(sandbox) {
    await links(sandbox)
    await swapped(sandbox)
    await archives(sandbox)
  },
  defects: {
    'archives may reach outside': { breaks: careless('-P'), says: /an archive with a name with \.\. succeeded/ },
    'a refused archive has already done its harm': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async unpack(path, tar) {
            await careless('-P')(real).files.unpack(path, tar)
            return real.files.unpack(path, tar)
          },
        },
      }),
      says: /nothing came out of an archive with/,
    },
    'setuid bits survive': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async unpack(path, tar) {
            const answer = await real.files.unpack(path, tar)
            await real.exec({ argv: ['chmod', '4755', '/tmp/good/a/b/file'] })
            return answer
          },
        },
      }),
      says: /no setuid bit survives/,
    },
    'file work is done as root whoever asks': {
      breaks: (real) => ({ ...real, files: { ...real.files, write: (path, content) => real.files.write(path, content) } }),
      says: /a write below a link as a user who may not succeeded/,
    },
    'removing follows links': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async remove(path, options) {
            if (options?.recursive === true) await real.exec({ argv: ['sh', '-c', 'rm -rf /tmp/root/tree/*'] })
            return real.files.remove(path, options)
          },
        },
      }),
      says: /failed|removing a tree never follows its links|exits 0/,
    },
    'an upload follows a swapped directory': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async write(path, content, options) {
            const answer = await real.files.write(path, content, options)
            if (String(path).endsWith('swapped-file')) await real.exec({ argv: ['touch', '/etc/swapped-file'] })
            return answer
          },
        },
      }),
      says: /the upload did not follow the swapped link/,
    },
  },
})
