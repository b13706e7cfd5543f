/** Measures the families of the control plane alone, each on databases of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '@sandglass/control-plane'
import { startTestPostgres } from '@sandglass/testkit'
import { machineAtRest } from '../measure/machine.ts'
import type { Finding } from '../report/finding.ts'
import type { SettingRun } from '../run-setting.ts'
import type { ControlFamily } from './control-bench.ts'

export type ControlRun = Omit<SettingRun, 'setting' | 'families'> & { readonly families: readonly ControlFamily[] }

export async function runControl(run: ControlRun): Promise<Finding[]> {
  const { samples, signal, count, note } = run
  run.progress('starting a durable Postgres')
  const postgres = await startTestPostgres(migrate, true)
  const scratch = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const atRest = (): Promise<void> => (run.isLook ? Promise.resolve() : machineAtRest(signal))
  const findings: Finding[] = []
  try {
    for (const family of run.families) {
      const ids = family.ids.join(', ')
      run.progress(`measuring ${ids} (the control plane alone)`)
      try {
        await atRest()
        findings.push(...(await family.measure({ postgres, samples, scratch, signal, atRest, count, note })))
      } catch (error) {
        signal.throwIfAborted()
        note(ids, `failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
      }
    }
  } finally {
    await postgres.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
  return findings
}
