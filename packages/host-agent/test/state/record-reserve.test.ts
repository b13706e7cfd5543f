/** Records on a disk that is full: a file system of a few MiB, full in earnest. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeJson } from '../../src/state/json-file.ts'
import { fillReserve } from '../../src/state/record-reserve.ts'

const root = mkdtempSync(join(tmpdir(), 'sandglass-full-'))
const sandboxes = join(root, 'sandboxes')
before(() => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m', 'sandglass-test', root])
  mkdirSync(sandboxes)
})
after(() => {
  execFileSync('umount', [root])
  rmSync(root, { recursive: true })
})

const fill = (): void => {
  assert.throws(
    () => {
      for (let index = 0; ; index += 1) writeFileSync(join(root, `ballast-${index}-${Math.random()}`), Buffer.alloc(64 * 1024))
    },
    { code: 'ENOSPC' },
  )
  // Down to the last page.
  for (let left = true; left; ) {
    try {
      writeFileSync(join(root, `crumb-${Math.random()}`), Buffer.alloc(4_096))
    } catch {
      left = false
    }
  }
  assert.equal(statfsSync(root).bavail, 0)
}

test('records are written on a full disk, from room that was kept; without it they are not', async () => {
  await fillReserve(root)
  const kept = statSync(join(root, 'reserve')).size
  fill()
  for (let index = 0; index < 50; index += 1) await writeJson(join(sandboxes, `sb${index}.json`), { index })
  await writeJson(join(root, 'host.json'), { seq: 1 })
  assert.equal(readFileSync(join(sandboxes, 'sb49.json'), 'utf8'), '{"index":49}\n')
  const left = statSync(join(root, 'reserve')).size
  assert.ok(left < kept && left > kept / 2, `${left} of ${kept} bytes are left`)
  await fillReserve(root)
  assert.equal(statSync(join(root, 'reserve')).size, left, 'it takes no room where there is none')
  rmSync(join(root, 'reserve'))
  fill()
  await assert.rejects(writeJson(join(sandboxes, 'more.json'), {}), { code: 'ENOSPC' })
})
