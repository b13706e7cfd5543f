/**
 * `sandglass bench [--only S1,E2] [--json FILE] [--samples N]`: the rows of the design's table of numbers, each beside its peer.
 *
 * Through the public SDK, with authentication, real Postgres and real gVisor, on installations of its own. The exit code is 0 when every row
 * that was measured holds, 1 when one does not, 2 for a wrong command line.
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runscVersion } from '@sandglass/host-agent/drivers/gvisor/runsc'
import { parseWishes, UsageError, type Wishes } from './arguments.ts'
import { runControl } from './control/run-control.ts'
import { cachePlace } from './installation/cache.ts'
import { SETTINGS } from './installation/settings.ts'
import { BUSY_SHARE, busyShare, machineFacts, textOfMachine } from './measure/machine.ts'
import { Samples } from './measure/samples.ts'
import { type Finding, reportRow } from './report/finding.ts'
import { jsonOf, type Note } from './report/json.ts'
import { inOrder, missingRows } from './report/order.ts'
import { plot } from './report/plot.ts'
import { table } from './report/table.ts'
import { CONTROL_FAMILIES, FAMILIES, ROW_IDS } from './rows.ts'
import { runSetting } from './run-setting.ts'

const LOOK_MS = 2_000

const print = (text: string): void => void process.stdout.write(`${text}\n`)
const say = (text: string): void => void process.stderr.write(`bench: ${text}\n`)

async function measure(wishes: Wishes, samples: Samples, notes: Note[], signal: AbortSignal): Promise<Finding[]> {
  const wanted = (id: string): boolean => wishes.only === undefined || wishes.only.has(id)
  const note = (id: string, text: string): void => {
    notes.push({ id, text })
    say(`${id}: ${text}`)
  }
  const findings: Finding[] = []
  const shared = {
    samples,
    signal,
    count: (most: number): number => Math.min(most, wishes.samples),
    isLook: Number.isFinite(wishes.samples),
    note,
    progress: say,
  }
  const ofControl = CONTROL_FAMILIES.filter((family) => family.ids.some(wanted) && (wishes.only !== undefined || family.isLong !== true))
  if (ofControl.length > 0) findings.push(...(await runControl({ ...shared, families: ofControl })).filter(({ id }) => wanted(id)))
  for (const setting of SETTINGS) {
    const families = FAMILIES.filter((family) => family.setting === setting && family.ids.some(wanted))
    if (families.length === 0) continue
    const found = await runSetting({ ...shared, setting, families }).catch((error: unknown): Finding[] => {
      signal.throwIfAborted()
      // The rows of other settings are still worth telling.
      note(families.flatMap(({ ids }) => ids).join(', '), `failed: ${error instanceof Error ? error.message : String(error)}`)
      return []
    })
    for (const finding of found.filter(({ id }) => wanted(id))) {
      if (finding.void !== undefined) note(finding.id, `does not count: ${finding.void}`)
      findings.push(finding)
    }
  }
  return findings
}

async function main(argv: readonly string[]): Promise<number> {
  const wishes = parseWishes(argv, ROW_IDS)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interrupted.abort(new Error(`${signal}: taking everything down`)))
  const began = new Date()
  const machine = machineFacts(`gVisor ${await runscVersion(join(cachePlace(), 'bin/runsc'))} on systrap`)
  const busy = await busyShare(LOOK_MS)
  const quiet = busy <= BUSY_SHARE
  const loud = `THIS MACHINE IS BUSY (${Math.round(busy * 100)} % of its CPU before anything was started): do not believe these numbers.`
  if (!quiet) say(loud)
  const samplesPath = wishes.json === undefined ? join(tmpdir(), `sandglass-bench-${began.getTime()}.samples.ndjson`) : `${resolve(wishes.json)}.samples.ndjson`
  const samples = new Samples(samplesPath)
  const notes: Note[] = []
  const found = await measure(wishes, samples, notes, interrupted.signal)
  const findings = inOrder(found, ROW_IDS)
  const rows = findings.map(reportRow)
  const long = new Set(CONTROL_FAMILIES.filter(({ isLong }) => isLong === true).flatMap(({ ids }) => ids))
  const asked = ROW_IDS.filter((id) => (wishes.only === undefined ? !long.has(id) : wishes.only.has(id)))
  const missing = missingRows(rows, asked)
  print(table(rows))
  print('')
  print(plot(findings))
  print('')
  for (const { id, text } of notes) print(`${id}: ${text.split('\n')[0] ?? ''}`)
  if (missing.length > 0) print(`not measured: ${missing.join(', ')}`)
  if (!quiet) print(loud)
  print(`on ${textOfMachine(machine)}`)
  print(`raw samples: ${samples.path}`)
  if (wishes.json !== undefined) writeFileSync(wishes.json, jsonOf({ began_at: began.toISOString(), machine, quiet, notes, rows }))
  const held = rows.filter(({ holds }) => holds).length
  print(`${held} of ${rows.length} hold in ${((Date.now() - began.getTime()) / 1_000).toFixed(0)} s`)
  return held === rows.length && missing.length === 0 ? 0 : 1
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  say(error instanceof UsageError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.exitCode = error instanceof UsageError ? 2 : 1
}
