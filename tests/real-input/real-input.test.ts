/**
 * Real packages test themselves in a sandbox: uploaded as the archive that their authors published, run with streamed output, and compared
 * with the same run outside: the same counts, and the same outcome of each test.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from '@sandglass/sdk'
import { sharedInstallation } from '../e2e/file-installation.ts'
import { runOutside } from './outside.ts'
import { archiveOf, PACKAGES, testCommand } from './packages.ts'
import { closingCounts, outcomes } from './unittest-report.ts'

const TIMEOUT_MS = 600_000

for (const source of PACKAGES) {
  test(`${source.name}: its own tests end the same inside and outside`, { timeout: TIMEOUT_MS }, async (context) => {
    const archive = await archiveOf(source)
    const installation = await sharedInstallation()
    await using sandbox = await Sandbox.create({ client: installation.client(), resources: { vcpu: 2, memoryMb: 1_024, diskGb: 2 }, ttlSeconds: 1_200 })
    const extracted = await sandbox.files.writeArchive('/workspace', archive)
    assert.ok(extracted.entries > 10, 'the archive was unpacked')

    const running = await sandbox.spawn([...testCommand(source)], { cwd: `/workspace/${source.directory}` })
    let ended = false
    const exit = running.exit.finally(() => {
      ended = true
    })
    let inside = ''
    let chunks = 0
    let early = false
    const errors = (async () => {
      for await (const text of running.stderr.text()) {
        chunks += 1
        early ||= !ended && /\.\.\. ok$/m.test(text)
        inside += text
      }
    })()
    const printed = running.stdout.readBytes()
    const { exitCode } = await exit
    await errors
    assert.ok(early && chunks > 1, `output was streamed while the tests ran (${chunks} parts)`)
    assert.ok((await printed).byteLength >= 0)

    const counts = closingCounts(inside)
    const outside = await runOutside(archive, source.directory, testCommand(source))
    assert.equal(exitCode, 0, inside.slice(-2_000))
    assert.equal(outside.code, 0, outside.output.slice(-2_000))
    assert.deepEqual(counts, closingCounts(outside.output), 'the closing counts are equal')
    assert.ok(counts.ran > 100, 'tests ran')
    assert.ok(outcomes(inside).length >= counts.ran - counts.skipped, 'the outcome of each test was read')
    assert.deepEqual(outcomes(inside), outcomes(outside.output), 'each test ended the same')
    context.diagnostic(`${source.name}: ${counts.ran} ran, ${counts.failures} failures, ${counts.errors} errors, ${counts.skipped} skipped, inside and outside`)
  })
}
