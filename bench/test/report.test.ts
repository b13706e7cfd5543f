/** From a finding to the table, the plot and the JSON. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ratioAtLeast, ratioAtMost, reaches, textOfBound, valueAtMost } from '../report/bound.ts'
import { type Finding, reportRow } from '../report/finding.ts'
import { jsonOf } from '../report/json.ts'
import { inOrder, missingRows } from '../report/order.ts'
import { plot, shareOfBound } from '../report/plot.ts'
import { table } from '../report/table.ts'

const finding = (change: Partial<Finding> = {}): Finding => ({
  id: 'S1',
  metric: 'start',
  unit: 'ms',
  value: 20,
  peer: 'raw',
  peerValue: 200,
  must: ratioAtMost(1 / 6),
  aim: ratioAtMost(1 / 12),
  ...change,
})

test('bounds are written as in the design', () => {
  assert.equal(textOfBound(ratioAtMost(1 / 6)), '≤ 1/6')
  assert.equal(textOfBound(ratioAtMost(1.15)), '≤ 1.15×')
  assert.equal(textOfBound(ratioAtMost(1 / 3)), '≤ 1/3')
  assert.equal(textOfBound(ratioAtLeast(0.7)), '≥ 0.7×')
  assert.equal(textOfBound(ratioAtMost(0.9)), '≤ 0.9×')
  assert.equal(textOfBound(valueAtMost(32, 'MiB')), '≤ 32 MiB')
  assert.equal(textOfBound(valueAtMost(0, '')), '≤ 0')
})

test('a bound is reached at its limit and not one step past it', () => {
  assert.ok(reaches(ratioAtMost(4), { value: null, ratio: 4 }))
  assert.ok(!reaches(ratioAtMost(4), { value: null, ratio: 4.001 }))
  assert.ok(reaches(ratioAtLeast(5), { value: null, ratio: 5 }))
  assert.ok(!reaches(ratioAtLeast(5), { value: null, ratio: 4.999 }))
  assert.ok(reaches(valueAtMost(150, 'ms'), { value: 150, ratio: null }))
  assert.ok(!reaches(valueAtMost(150, 'ms'), { value: 150.1, ratio: 0 }))
})

test('what was not measured reaches nothing', () => {
  for (const bound of [ratioAtMost(4), ratioAtLeast(1), valueAtMost(1, '')]) assert.ok(!reaches(bound, { value: null, ratio: null }))
  assert.ok(!reaches(ratioAtMost(4), { value: Number.NaN, ratio: Number.NaN }))
  assert.equal(reportRow(finding({ peerValue: 0 })).ratio, null)
})

test('a row whose must the design does not name holds as soon as it is measured, and is not drawn', () => {
  const free = finding({ must: null, aim: ratioAtLeast(0.9) })
  assert.deepEqual([reportRow(free).must, reportRow(free).aim, reportRow(free).holds], ['-', '≥ 0.9×', true])
  assert.equal(reportRow({ ...free, value: null }).holds, false)
  assert.equal(plot([free, finding()]).split('\n').length, 2)
})

test('a row carries value, peer, ratio and whether its must holds', () => {
  assert.deepEqual(reportRow(finding()), {
    id: 'S1',
    metric: 'start',
    value: 20,
    unit: 'ms',
    peer: 'raw',
    peer_value: 200,
    ratio: 0.1,
    must: '≤ 1/6',
    aim: '≤ 1/12',
    holds: true,
  })
  assert.equal(reportRow(finding({ value: 40 })).holds, false)
})

test('what does not count is no number, however good it is, and holds nothing', () => {
  const alone = finding({ value: 100 })
  const voided = { ...alone, void: '3 of 100 starts were cold' }
  const { value, ratio, holds } = reportRow(voided)
  assert.deepEqual([value, ratio, holds], [null, null, false])
  assert.equal(shareOfBound(voided, ratioAtMost(1)), null)
  assert.equal(shareOfBound(alone, ratioAtMost(1)), 0.5)
})

test('the bound is judged before the number is rounded for reading', () => {
  const row = reportRow(finding({ value: 33.33334, peerValue: 200 }))
  assert.equal(row.ratio, 0.1667)
  assert.equal(row.holds, false)
})

test('the table aligns its columns and says what does not hold', () => {
  const lines = table([reportRow(finding()), reportRow(finding({ id: 'T2', metric: 'a longer metric', value: null }))]).split('\n')
  assert.equal(lines.length, 3)
  assert.match(lines[1] ?? '', /^S1 +start +20\.0 ms +200 ms +raw +0\.100 +≤ 1\/6 +≤ 1\/12 +yes$/)
  assert.match(lines[2] ?? '', /^T2 +a longer metric +- .*NO$/)
  assert.equal(lines[0]?.indexOf('must'), lines[1]?.indexOf('≤ 1/6'))
})

test('the plot draws every row on the scale of its own must', () => {
  assert.equal(shareOfBound(finding({ value: 100 }), ratioAtMost(1)), 0.5)
  assert.equal(shareOfBound(finding({ value: 800 }), ratioAtLeast(2)), 0.5)
  assert.equal(shareOfBound(finding({ value: null }), ratioAtMost(1)), null)
  assert.equal(shareOfBound(finding({ value: 0 }), valueAtMost(0, '')), 0)
  assert.equal(shareOfBound(finding({ value: 1 }), valueAtMost(0, '')), Number.POSITIVE_INFINITY)
  const [, better = '', worse = '', unmeasured = ''] = plot([finding(), finding({ value: 190 }), finding({ value: null })]).split('\n')
  assert.ok(better.indexOf('●') < better.indexOf('|'))
  assert.ok(worse.indexOf('●') > worse.indexOf('|'))
  assert.match(unmeasured, /not measured$/)
})

test('rows come in the order of the design, and those that gave nothing are named', () => {
  const rows = inOrder([{ id: 'T1' }, { id: 'S1' }, { id: 'T1' }], ['S1', 'E2', 'T1'])
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['S1', 'T1', 'T1'],
  )
  assert.deepEqual(missingRows(rows, ['S1', 'E2', 'T1']), ['E2'])
})

test('the JSON holds the rows with exactly their fields', () => {
  const text = jsonOf({
    began_at: '2026-01-01T00:00:00.000Z',
    machine: { cpu: 'x', cores: 2, memory_gb: 24, kernel: 'k', runtime: 'r' },
    quiet: true,
    notes: [],
    rows: [reportRow(finding())],
  })
  const parsed: unknown = JSON.parse(text)
  assert.ok(typeof parsed === 'object' && parsed !== null && 'rows' in parsed && Array.isArray(parsed.rows))
  assert.deepEqual(Object.keys(parsed.rows[0] ?? {}), ['id', 'metric', 'value', 'unit', 'peer', 'peer_value', 'ratio', 'must', 'aim', 'holds'])
})
