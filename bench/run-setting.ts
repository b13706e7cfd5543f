/** Measures the families of one setting on an installation of its own, and takes it down. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startInstallation } from '../tests/e2e/installation.ts'
import type { Bench, Family } from './bench.ts'
import { Freshness } from './installation/freshness.ts'
import { environmentOf, type Setting } from './installation/settings.ts'
import { BUSY_SHARE, busyShare } from './measure/machine.ts'
import type { Samples } from './measure/samples.ts'
import type { Finding } from './report/finding.ts'

const LOOK_MS = 500
/** What an installation does by itself when it has started, such as filling its pool, is over long before. */
const REST_MS = 20_000
const PERCENT = 100

export type SettingRun = {
  readonly setting: Setting
  readonly families: readonly Family[]
  readonly samples: Samples
  readonly signal: AbortSignal
  readonly count: (wanted: number) => number
  readonly note: (id: string, text: string) => void
  /** Called for every family before it begins and with what it found. */
  readonly progress: (text: string) => void
}

/** Waits until the machine is quiet, but not for ever. @returns how busy it was at last */
async function atRest(): Promise<number> {
  const deadline = performance.now() + REST_MS
  for (;;) {
    const busy = await busyShare(LOOK_MS)
    if (busy <= BUSY_SHARE || performance.now() > deadline) return busy
  }
}

async function measured(bench: Bench, family: Family, run: SettingRun): Promise<Finding[]> {
  const ids = family.ids.join(', ')
  run.progress(`measuring ${ids} (${run.setting})`)
  const busy = await atRest()
  if (busy > BUSY_SHARE) run.note(ids, `NOT QUIET: ${Math.round(busy * PERCENT)} % of the CPU was in use before it was measured`)
  try {
    return await family.measure(bench)
  } catch (error) {
    run.signal.throwIfAborted()
    run.note(ids, `failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return []
  }
}

export async function runSetting(run: SettingRun): Promise<Finding[]> {
  run.progress(`starting an installation (${run.setting})`)
  const owned = await startInstallation(environmentOf(run.setting))
  const scratch = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const { installation } = owned
  const { samples, signal, count, note } = run
  const bench: Bench = { installation, client: installation.client(), samples, freshness: new Freshness(), scratch, signal, count, note }
  const findings: Finding[] = []
  try {
    for (const family of run.families) findings.push(...(await measured(bench, family, run)))
  } finally {
    // What was measured is told also when the end of the installation fails.
    await owned
      .stop()
      .catch((error: unknown) => run.note(run.setting, `the installation did not go away: ${error instanceof Error ? error.message : String(error)}`))
    rmSync(scratch, { recursive: true, force: true })
  }
  return findings
}
