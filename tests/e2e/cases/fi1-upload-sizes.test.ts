/** FI1: an upload said ok, and the file was missing, short or not yet visible. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { digestOf, patterned, patternedStream } from '../subject/bytes.ts'
import { ask, sha256Inside } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const KIB = 1024
const MIB = KIB * KIB
const GIB = KIB * MIB
const SIZES = [0, 1, 18 * KIB - 1, 18 * KIB, 18 * KIB + 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB]

async function thereAtOnce(sandbox: Sandboxed, size: number): Promise<void> {
  const path = `/workspace/upload-${size}`
  const sent = await digestOf(patternedStream(size, size + 1))
  const answer = await must(
    `an upload of ${size} bytes`,
    within(240_000, `the answer of an upload of ${size} bytes`, sandbox.files.write(path, patternedStream(size, size + 1))),
  )
  assert.equal(await sha256Inside(sandbox, path), sent.sha256, `the file of ${size} bytes is there, whole, as soon as its upload is answered.`)
  assert.equal(answer.size, size, `the answer names the size of ${size} bytes.`)
  const back = await must(`a download of ${size} bytes`, digestOf(sandbox.files.stream(path)))
  assert.deepEqual(back, sent, `the file of ${size} bytes comes back as it was sent.`)
  await sandbox.files.remove(path)
}

defineCase<Sandboxed>({
  id: 'FI1',
  title: 'an upload is visible and whole when it is answered, from nothing to 1 GiB',
  subject: sandboxed,
  timeoutMs: 600_000,
  async run(sandbox, size) {
    for (const bytes of SIZES) await thereAtOnce(sandbox, bytes)
    const whole = patterned(18 * KIB + 1, 9)
    await must('an upload over an existing file', sandbox.files.write('/workspace/again', patterned(MIB, 8)))
    await must('an upload over an existing file', sandbox.files.write('/workspace/again', whole))
    assert.equal((await sandbox.files.stat('/workspace/again')).size, whole.byteLength, 'a shorter upload replaces the longer file.')
    if (size === 'full') await thereAtOnce(sandbox, GIB)
    assert.equal(await ask(sandbox, { shell: 'ls -A /workspace | grep -v ^again || true' }), '', 'nothing is left beside the uploads.')
  },
  defects: {
    'the file is visible only later': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async write(path, content, options) {
            const { size } = content instanceof Uint8Array ? { size: content.byteLength } : await digestOf(content)
            setTimeout(() => void real.files.write(path, new Uint8Array(size), options).catch(() => undefined), 500)
            return { size }
          },
        },
      }),
      says: /is there, whole, as soon as its upload is answered/,
    },
    'the file is missing': {
      breaks: (real) => ({ ...real, files: { ...real.files, write: async () => ({ size: 0 }) } }),
      says: /is there, whole, as soon as its upload is answered/,
    },
    'the last chunk is dropped': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async write(path, content, options) {
            const all: Uint8Array[] = []
            if (content instanceof Uint8Array) all.push(content)
            else for await (const chunk of content) all.push(chunk)
            const bytes = Buffer.concat(all)
            await real.files.write(path, bytes.subarray(0, bytes.byteLength - (bytes.byteLength % (64 * KIB))), options)
            return { size: bytes.byteLength }
          },
        },
      }),
      says: /is there, whole, as soon as its upload is answered/,
    },
    'the download ends early': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async *stream(path) {
            let passed = 0
            for await (const chunk of real.files.stream(path)) {
              const rest = chunk.subarray(0, Math.max(0, 64 * KIB - passed))
              passed += rest.byteLength
              if (rest.byteLength > 0) yield rest
            }
          },
        },
      }),
      says: /comes back as it was sent/,
    },
    'temporary files are left': {
      breaks: (real) => ({
        ...real,
        files: {
          ...real.files,
          async write(path, content, options) {
            await real.exec({ argv: ['touch', '/workspace/.upload-left'] })
            return real.files.write(path, content, options)
          },
        },
      }),
      says: /nothing is left beside the uploads/,
    },
  },
})
