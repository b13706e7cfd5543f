/** FI8: a whole upload is held in memory; one that fails leaves a part behind. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase, type Size } from '../case.ts'
import { type Measured, measured } from '../measured.ts'
import type { Growth } from '../memory-watch.ts'
import { digestOf, patternedStream } from '../subject/bytes.ts'
import { Coded, refused } from '../subject/coded.ts'
import { ask, sha256Inside } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const MIB = 1024 * 1024
const UPLOAD = { full: 2_048 * MIB, small: 96 * MIB } as const
const WARM_UP = 64 * MIB
/** Windows of HTTP/2 and a young heap that fills before it is swept; a thirtieth of what is uploaded. */
const GROWTH_BYTES = 64 * MIB
const LIMIT_MS = 120_000
const DISK_GB = 4
/** Left free before the upload that does not fit. */
const FREE = { full: 450 * MIB, small: 36 * MIB } as const

function assertFlat(growth: Growth, what: string): void {
  for (const [role, bytes] of Object.entries(growth)) {
    assert.ok(bytes <= GROWTH_BYTES, `${role} stays flat during ${what}; it grew by ${(bytes / MIB).toFixed(1)} MiB.`)
  }
}

const left = async (sandbox: Sandboxed): Promise<string> => ask(sandbox, { argv: ['ls', '-A', '/workspace'] })
const freeBytes = async (sandbox: Sandboxed): Promise<number> =>
  Number(await ask(sandbox, { argv: ['python3', '-c', 'import os; s = os.statvfs("/workspace"); print(s.f_bavail * s.f_frsize)'] }))

/** Half of what was announced, then nothing more. */
async function* half(size: number): AsyncGenerator<Uint8Array> {
  yield* patternedStream(size / 2, 2)
  throw new Error('the client drops')
}

async function dropsAtHalf(sandbox: Sandboxed, size: number): Promise<void> {
  await assert.rejects(within(LIMIT_MS, 'the end of an upload that was dropped', sandbox.files.write('/workspace/dropped', half(size))))
  await until(15_000, 'nothing is left of an upload that was dropped', async () => (await left(sandbox)) === '')
}

/** A disk with room for nine tenths of an upload. */
async function diskFull(sandbox: Sandboxed, size: Size): Promise<void> {
  const fill = (await freeBytes(sandbox)) - FREE[size]
  await ask(sandbox, {
    argv: ['python3', '-c', 'import os, sys; os.posix_fallocate(os.open("/var/filler", os.O_CREAT | os.O_WRONLY), 0, int(sys.argv[1]))', String(fill)],
  })
  const before = await freeBytes(sandbox)
  const upload = sandbox.files.write('/workspace/too-large', patternedStream(Math.ceil(before / 0.9), 3))
  await within(LIMIT_MS, 'the refusal of an upload that does not fit', refused('an upload that does not fit', 'no_space', upload))
  await until(15_000, 'nothing is left of an upload that did not fit', async () => (await left(sandbox)) === '')
  await until(15_000, 'its room is free again', async () => (await freeBytes(sandbox)) >= before - MIB)
  await ask(sandbox, { argv: ['rm', '/var/filler'] })
}

defineCase<Measured>({
  id: 'FI8',
  title: 'an upload of 2 GiB costs no memory; one that is dropped at its half or meets a full disk leaves nothing',
  subject: () => measured(DISK_GB),
  timeoutMs: 400_000,
  async run({ sandbox, growthDuring }, size) {
    const bytes = UPLOAD[size]
    await must('an upload', sandbox.files.write('/workspace/warm', patternedStream(WARM_UP, 1)))
    await sandbox.files.remove('/workspace/warm')
    const whole = await growthDuring(async () => {
      const answer = await must(
        'a large upload',
        within(LIMIT_MS, 'the answer of a large upload', sandbox.files.write('/workspace/large', patternedStream(bytes, 1))),
      )
      assert.equal(answer.size, bytes)
    })
    assertFlat(whole, 'a large upload')
    const sent = await digestOf(patternedStream(bytes, 1))
    assert.equal(await sha256Inside(sandbox, '/workspace/large'), sent.sha256, 'a large upload is there, whole.')
    await sandbox.files.remove('/workspace/large')
    assertFlat(await growthDuring(() => dropsAtHalf(sandbox, bytes)), 'an upload that is dropped')
    assertFlat(await growthDuring(() => diskFull(sandbox, size)), 'an upload that does not fit')
  },
  defects: {
    'the upload is held in memory': {
      breaks: (real) => ({ ...real, growthDuring: async (action) => ({ ...(await real.growthDuring(action)), 'host-agent': UPLOAD.small }) }),
      says: /host-agent stays flat during a large upload/,
    },
    'the end of a large upload is lost': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          files: {
            ...real.sandbox.files,
            async write(path, content, options) {
              if (path !== '/workspace/large') return real.sandbox.files.write(path, content, options)
              await real.sandbox.files.write(path, patternedStream(UPLOAD.small - 1, 1), options)
              return { size: UPLOAD.small }
            },
          },
        },
      }),
      says: /a large upload is there, whole/,
    },
    'half an upload is kept': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          files: {
            ...real.sandbox.files,
            async write(path, content, options) {
              if (path !== '/workspace/dropped') return real.sandbox.files.write(path, content, options)
              await real.sandbox.files.write('/workspace/dropped', new Uint8Array(10))
              throw new Coded('lost_contact')
            },
          },
        },
      }),
      says: /nothing is left of an upload that was dropped: still not so/,
    },
    'a full disk is not told': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          files: {
            ...real.sandbox.files,
            write: (path, content, options) =>
              real.sandbox.files.write(path, content, options).catch((error: unknown) => {
                if (path !== '/workspace/too-large') throw error
                return { size: 0 }
              }),
          },
        },
      }),
      says: /an upload that does not fit succeeded/,
    },
    'a temporary file is left on the full disk': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          files: {
            ...real.sandbox.files,
            write: (path, content, options) =>
              real.sandbox.files.write(path, content, options).catch(async (error: unknown) => {
                if (path === '/workspace/too-large') await real.sandbox.exec({ argv: ['touch', '/workspace/.part'] })
                throw error
              }),
          },
        },
      }),
      says: /nothing is left of an upload that did not fit/,
    },
  },
})
