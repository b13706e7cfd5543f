/**
 * Probe, do not assume: a canary sandbox is started by the same steps as any other, its guest must answer and must see gVisor's kernel.
 *
 * What was proved holds for one runtime binary, one guest agent, one template and one boot of the machine, and is kept on disk under that
 * key, so that a second start of the agent does not wait for it. A failure is never kept.
 */
import { stat } from 'node:fs/promises'
import { closed, type DriverProbe, parserOf } from '@sandglass/contract'
import Type from 'typebox'
import type { Clock } from '../../clock.ts'
import { reasonOf } from '../../log.ts'
import { readJson, writeJson } from '../../state/json-file.ts'
import { runscVersion } from './runsc.ts'

const proofParser = parserOf(closed({ key: Type.String(), version: Type.String(), kernel: Type.String(), probe_ms: Type.Number() }))

/** Starts a canary, returns what its /proc/version says, and leaves nothing behind. */
export type Canary = (signal: AbortSignal) => Promise<string>

export type GvisorProbe = {
  run(signal: AbortSignal): Promise<DriverProbe>
  /** Of the last probe that proved something. */
  evidence(): Readonly<Record<string, string>>
}

export type ProbeInput = {
  readonly binary: string
  readonly proofFile: string
  /** What else the proof depends on: boot, guest agent, template. */
  readonly conditions: () => Promise<string>
  readonly canary: Canary
  readonly clock: Clock
}

async function fileKey(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path)
  return `${path} ${size} ${mtimeMs}`
}

export function gvisorProbe({ binary, proofFile, conditions, canary, clock }: ProbeInput): GvisorProbe {
  let proof: { version: string; kernel: string } | undefined

  const proved = (version: string, kernel: string, probeMs: number): DriverProbe => {
    proof = { version, kernel }
    return { name: 'gvisor', proved: true, version, detail: `A canary started and answered; its kernel says: ${kernel}`, probe_ms: probeMs }
  }

  return {
    evidence: () => ({ driver: 'gvisor', platform: 'systrap', runtime_version: proof?.version ?? '', kernel: proof?.kernel ?? '' }),
    async run(signal) {
      const began = clock.nowMs()
      try {
        const key = `${await fileKey(binary)} ${await conditions()}`
        const kept = await readJson(proofFile, proofParser).catch(() => undefined)
        if (kept?.key === key) return proved(kept.version, kept.kernel, kept.probe_ms)
        const version = await runscVersion(binary)
        const kernel = (await canary(signal)).trim().slice(0, 200)
        const probeMs = Math.round(clock.nowMs() - began)
        await writeJson(proofFile, { key, version, kernel, probe_ms: probeMs })
        return proved(version, kernel, probeMs)
      } catch (error) {
        proof = undefined
        return {
          name: 'gvisor',
          proved: false,
          version: '',
          detail: `The canary did not answer: ${reasonOf(error)}`,
          probe_ms: Math.round(clock.nowMs() - began),
        }
      }
    },
  }
}
