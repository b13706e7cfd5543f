/**
 * The simulation finds defects: guards of the ownership protocol are switched off, and so are others of our own, one at a time; each that a seed is known for
 * has to be found within 500 seeds. SANDGLASS_SIM_DEFECT names the ones to look for, apart by commas.
 */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import type { Finding } from '@sandglass/sim/defects/search'
import { DEFECTS, FOUND } from '@sandglass/sim/defects/table'
import { runJobs } from '@sandglass/sim/seeds'

const SEEDS = 500

const named = process.env['SANDGLASS_SIM_DEFECT']?.split(',')
const isSought = (name: string): boolean => (named === undefined ? FOUND.has(name) : named.includes(name))
const defects = DEFECTS.filter(({ name }) => isSought(name))

test('every deliberate defect is found', async (t) => {
  const findings = new Map<string, Finding>()
  await runJobs(
    defects.map((defect) => ({ kind: 'search', search: { defect, seeds: SEEDS } })),
    Math.min(2, availableParallelism()),
    (result) => {
      if (result.kind === 'search') findings.set(result.finding.name, result.finding)
      return true
    },
  )
  for (const { name, says } of DEFECTS) {
    if (!isSought(name)) {
      await t.test(`${name}: ${says}`, { skip: 'no seed is known for it: SANDGLASS_SIM_DEFECT looks for it by name' }, () => undefined)
      continue
    }
    await t.test(`${name}: ${says}`, () => {
      const finding = findings.get(name)
      assert.ok(finding?.seed !== undefined, `not found within ${SEEDS} seeds`)
      t.diagnostic(`${name}: seed ${finding.seed}, ${(finding.tookMs / 1_000).toFixed(1)} s: ${finding.violation?.split('\n')[0]}`)
    })
  }
})
