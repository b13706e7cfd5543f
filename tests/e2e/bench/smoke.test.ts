/** The benchmark runs end to end: one cheap row, one sample of everything, its JSON and its raw samples. Nothing is judged by its speed here. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { closed, nullable, parserOf } from '@sandglass/contract/schema'
import Type from 'typebox'
import { sharedInstallation } from '../file-installation.ts'

const RUN_MS = 300_000

const row = closed({
  id: Type.String(),
  metric: Type.String(),
  value: nullable(Type.Number()),
  unit: Type.String(),
  peer: Type.String(),
  peer_value: nullable(Type.Number()),
  ratio: nullable(Type.Number()),
  must: Type.String(),
  aim: Type.String(),
  holds: Type.Boolean(),
})
const report = parserOf(Type.Object({ quiet: Type.Boolean(), rows: Type.Array(row) }))
const sample = parserOf(Type.Object({ series: Type.String(), side: Type.String(), value: Type.Number(), unit: Type.String() }))

test('one row, one sample: a table, the JSON that it promises, and both sides in the raw samples', async () => {
  const installation = await sharedInstallation()
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-bench-test-'))
  try {
    const json = join(folder, 'report.json')
    const { code, stdout, stderr } = await installation.cli(['bench', '--only', 'E2', '--samples', '1', '--json', json], { timeoutMs: RUN_MS })
    assert.ok(code === 0 || code === 1, `it ended with ${code}: ${stderr}`)
    const { rows } = report.parse(JSON.parse(readFileSync(json, 'utf8')))
    assert.deepEqual(
      rows.map(({ id, peer, must }) => ({ id, peer, must })),
      [{ id: 'E2', peer: 'runsc exec', must: '≤ 1/3' }],
      stderr,
    )
    const [found] = rows
    assert.ok(found !== undefined && (found.value ?? 0) > 0 && (found.peer_value ?? 0) > 0 && (found.ratio ?? 0) > 0)
    assert.match(stdout.toString('utf8'), /^E2 +exec round trip/m)
    const samples = readFileSync(`${json}.samples.ndjson`, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => sample.parse(JSON.parse(line)))
    assert.deepEqual(samples.map(({ side }) => side).sort(), ['ours', 'peer'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
