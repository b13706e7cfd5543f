/** FI4: a JSON error written into the user's file; a transfer that breaks leaves half a file. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { disposableSandbox } from '../fixture.ts'
import { patterned, utf8 } from '../subject/bytes.ts'
import { Coded, codeOf, refused } from '../subject/coded.ts'
import { ask } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

type Subject = {
  readonly sandbox: Sandboxed
  /** Ends the sandbox and returns when that has begun. */
  readonly end: () => Promise<void>
}

const OLD = 'what was here before\n'

/** Runs a download that must fail, and looks at what it did to the file it was for. */
async function leavesTheTarget(folder: string, what: string, download: (local: string) => Promise<void>): Promise<void> {
  const local = join(folder, 'target')
  await writeFile(local, OLD)
  await download(local)
  assert.equal(await readFile(local, 'utf8'), OLD, `the local file is untouched after ${what}.`)
  assert.deepEqual(await readdir(folder), ['target'], `nothing lies beside the local file after ${what}.`)
  await rm(local)
  await download(local)
  assert.deepEqual(await readdir(folder), [], `no local file appears after ${what}.`)
}

/** A body that breaks off after its first part. */
async function* breaksOff(): AsyncGenerator<Uint8Array> {
  yield patterned(200_000, 1)
  throw new Error('the sender broke off')
}

async function brokenUpload(sandbox: Sandboxed): Promise<void> {
  await must('an upload', sandbox.files.write('/tmp/kept', utf8(OLD)))
  await assert.rejects(within(30_000, 'the failure of an upload that broke off', sandbox.files.write('/tmp/kept', breaksOff())))
  await assert.rejects(within(30_000, 'the failure of an upload that broke off', sandbox.files.write('/tmp/new', breaksOff())))
  await until(15_000, 'only the kept file is inside', async () => (await ask(sandbox, { argv: ['ls', '-A', '/tmp'] })) === 'kept\n')
  assert.equal(await ask(sandbox, { argv: ['cat', '/tmp/kept'] }), OLD, 'the file inside is untouched after an upload that broke off.')
}

defineCase<Subject>({
  id: 'FI4',
  title: 'a transfer that fails is a typed error and leaves both ends as they were',
  subject: disposableSandbox,
  async run({ sandbox, end }) {
    const folder = await mkdtemp(join(tmpdir(), 'sandglass-fi4-'))
    try {
      await refused('reading what is not there', 'file_not_found', sandbox.files.read('/tmp/nothing'))
      await refused('reading a directory', 'is_a_directory', sandbox.files.read('/tmp'))
      for (const path of ['/tmp/nothing', '/nothing/at/all']) {
        await leavesTheTarget(folder, `a download of ${path}`, (local) =>
          refused(`a download of ${path}`, 'file_not_found', sandbox.files.download(path, local)).then(() => {}),
        )
      }
      await brokenUpload(sandbox)
      await ask(sandbox, { shell: 'head -c 300000000 /dev/zero > /tmp/large' })
      const stopped = (local: string) =>
        within(
          60_000,
          'the failure of a download from a sandbox that ends',
          refused(
            'a download from a sandbox that ends',
            ['lost_contact', 'sandbox_ended', 'sandbox_not_ready', 'sandbox_failed', 'session_revoked', 'unavailable'],
            sandbox.files.download('/tmp/large', local),
          ),
        ).then(() => {})
      const local = join(folder, 'target')
      await writeFile(local, OLD)
      const download = stopped(local)
      await end()
      await download
      assert.equal(await readFile(local, 'utf8'), OLD, 'the local file is untouched after the sandbox ended.')
      assert.deepEqual(await readdir(folder), ['target'], 'nothing lies beside the local file after the sandbox ended.')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
  defects: {
    'the error is written into the file': {
      breaks: ({ sandbox, end }) => ({
        end,
        sandbox: {
          ...sandbox,
          files: {
            ...sandbox.files,
            download: (path, local) =>
              sandbox.files.download(path, local).catch(async (error: unknown) => {
                await writeFile(local, JSON.stringify({ code: codeOf(error) }))
                throw error
              }),
          },
        },
      }),
      says: /the local file is untouched after a download of \/tmp\/nothing/,
    },
    'a partial file is left beside the target': {
      breaks: ({ sandbox, end }) => ({
        end,
        sandbox: {
          ...sandbox,
          files: {
            ...sandbox.files,
            async download(path, local) {
              await writeFile(`${local}.part`, '')
              await sandbox.files.download(path, local)
            },
          },
        },
      }),
      says: /nothing lies beside the local file/,
    },
    'a failed download looks like success': {
      breaks: ({ sandbox, end }) => ({
        end,
        sandbox: { ...sandbox, files: { ...sandbox.files, download: (path, local) => sandbox.files.download(path, local).catch(() => undefined) } },
      }),
      says: /a download of \/tmp\/nothing succeeded/,
    },
    'reading what is missing gives an empty file': {
      breaks: ({ sandbox, end }) => ({
        end,
        sandbox: { ...sandbox, files: { ...sandbox.files, read: (path) => sandbox.files.read(path).catch(() => new Uint8Array()) } },
      }),
      says: /reading what is not there succeeded/,
    },
    'half an upload replaces the file': {
      breaks: ({ sandbox, end }) => ({
        end,
        sandbox: {
          ...sandbox,
          files: {
            ...sandbox.files,
            async write(path, content, options) {
              if (content instanceof Uint8Array) return sandbox.files.write(path, content, options)
              if (path === '/tmp/kept') await sandbox.files.write(path, patterned(10, 1))
              throw new Coded('lost_contact')
            },
          },
        },
      }),
      says: /the file inside is untouched after an upload that broke off/,
    },
  },
})
