/** FI7: a huge directory stalls everything. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { must, until, within } from '../bounds.ts'
import { defineCase, type Size } from '../case.ts'
import { type Crowded, crowded } from '../measured.ts'
import type { Growth } from '../memory-watch.ts'
import { ask } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const MIB = 1024 * 1024
const FILES = { full: 200_000, small: 3_000 } as const
const PAGES = { full: 4, small: 3 } as const
const PAGE_NAMES = 1_000
const BLOCK_BYTES = 512
const LIMIT_MS = 100_000
/** Of a small command beside the work. */
const ANSWER_MS = 20_000
const PERIOD_MS = 200
const GROWTH_BYTES = 64 * MIB
const PATH = '/workspace/many'

const fileName = (index: number): string => `f${String(index).padStart(6, '0')}`
const MAKE = 'import os, sys\nos.mkdir(sys.argv[1]); os.chdir(sys.argv[1])\nfor n in range(int(sys.argv[2])): os.close(os.open("f%06d" % n, os.O_CREAT))\n'

/** Runs small commands one after the other for as long as something else goes on. */
async function staysUsable(sandbox: Sandboxed, what: string, work: Promise<void>): Promise<void> {
  let over = false
  const ended = work.finally(() => {
    over = true
  })
  ended.catch(() => undefined)
  while (!over) {
    await within(ANSWER_MS, `a small command during ${what}`, must('a small command', sandbox.exec({ argv: ['true'] })))
    await delay(PERIOD_MS)
  }
  await within(LIMIT_MS, what, must(what, ended))
}

async function listed({ names, pages }: Crowded, files: number, size: Size): Promise<void> {
  const seen = new Set<string>()
  for await (const name of names(PATH)) {
    assert.equal(seen.has(name), false, `the stream names ${name} once.`)
    seen.add(name)
  }
  assert.equal(seen.size, files, 'the stream names every file.')
  let page = 0
  for await (const some of pages(PATH)) {
    const expected = Array.from({ length: PAGE_NAMES }, (_, index) => fileName(page * PAGE_NAMES + index))
    assert.deepEqual(some, expected, `page ${page} holds its names in their order.`)
    page += 1
    if (page === PAGES[size]) break
  }
}

async function archived({ archive }: Crowded, files: number): Promise<void> {
  let rest = Buffer.alloc(0)
  let entries = 0
  for await (const chunk of archive(PATH)) {
    rest = Buffer.concat([rest, chunk])
    const whole = rest.byteLength - (rest.byteLength % BLOCK_BYTES)
    // The files are empty, so every block that is not zero is a header.
    for (let at = 0; at < whole; at += BLOCK_BYTES) if (rest[at] !== 0) entries += 1
    rest = rest.subarray(whole)
  }
  assert.equal(rest.byteLength, 0, 'an archive is whole blocks.')
  assert.equal(entries, files + 1, 'the archive holds the directory and every file.')
}

async function watched({ sandbox, created }: Crowded): Promise<void> {
  const leave = new AbortController()
  const seen: string[] = []
  let isReady = false
  const watching = (async () => {
    for await (const path of created(
      PATH,
      () => {
        isReady = true
      },
      leave.signal,
    ))
      seen.push(path)
  })()
  watching.catch(() => undefined)
  await until(LIMIT_MS, 'the watch begins', () => isReady)
  await ask(sandbox, { argv: ['touch', `${PATH}/one-more`] })
  await until(ANSWER_MS, 'a new file in the huge directory is seen', () => seen.some((path) => path.endsWith('/one-more')))
  leave.abort()
  await ask(sandbox, { argv: ['rm', `${PATH}/one-more`] })
}

function assertFlat(growth: Growth): void {
  for (const [role, bytes] of Object.entries(growth)) {
    assert.ok(bytes <= GROWTH_BYTES, `${role} stays flat; it grew by ${(bytes / MIB).toFixed(1)} MiB.`)
  }
}

defineCase<Crowded>({
  id: 'FI7',
  title: `a directory of ${FILES.full} files is listed, watched and packed in bounded memory, and nothing else waits for it`,
  subject: crowded,
  timeoutMs: 400_000,
  async run(subject, size) {
    const files = FILES[size]
    const { sandbox, growthDuring } = subject
    await ask(sandbox, { argv: ['python3', '-c', MAKE, PATH, String(files)], timeoutMs: 120_000 })
    const growth = await growthDuring(async () => {
      await staysUsable(sandbox, 'the listing', listed(subject, files, size))
      await watched(subject)
      await staysUsable(sandbox, 'the archive', archived(subject, files))
    })
    assertFlat(growth)
  },
  defects: {
    'the list ends early without a word': {
      breaks: (real) => ({
        ...real,
        async *names(path) {
          let count = 0
          for await (const name of real.names(path)) if (++count < FILES.small) yield name
        },
      }),
      says: /the stream names every file/,
    },
    'a page repeats the one before': {
      breaks: (real) => ({
        ...real,
        async *pages(path) {
          let first: readonly string[] | undefined
          for await (const page of real.pages(path)) {
            first ??= page
            yield first
          }
        },
      }),
      says: /page 1 holds its names/,
    },
    'the archive leaves files out': {
      breaks: (real) => ({
        ...real,
        async *archive(path) {
          let passed = 0
          for await (const chunk of real.archive(path)) {
            const cut = chunk.subarray(0, Math.max(0, BLOCK_BYTES * 100 - passed))
            passed += chunk.byteLength
            if (cut.byteLength > 0) yield cut
          }
        },
      }),
      says: /the archive holds the directory and every file/,
    },
    'nothing is seen in a huge directory': {
      breaks: (real) => ({
        ...real,
        async *created(path, ready, signal) {
          for await (const seen of real.created(path, ready, signal)) if (seen === '') yield seen
        },
      }),
      says: /a new file in the huge directory is seen/,
    },
    'other commands wait for the list': {
      breaks: (real) => ({
        ...real,
        sandbox: { ...real.sandbox, exec: (command) => (command.argv?.[0] === 'true' ? new Promise(() => {}) : real.sandbox.exec(command)) },
      }),
      says: /a small command during the listing did not come/,
    },
    'the whole list is held in memory': {
      breaks: (real) => ({
        ...real,
        growthDuring: async (action) => ({ ...(await real.growthDuring(action)), gateway: 300 * MIB }),
      }),
      says: /gateway stays flat/,
    },
  },
})
