/**
 * Fake: the real guest agent as an ordinary process of this machine. It isolates nothing, needs no root, and is offered only where
 * SANDGLASS_FAKE_DRIVER=1. Development and scale tests run it, with scripted delays, failures and exits.
 *
 * It is launched through the same gate as any runtime, so it stands still with the lease of its host.
 *
 * The process is found again by the path of its channel in its arguments, which names installation and runtime.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closed, LIMITS, parserOf } from '@sandglass/contract'
import Type from 'typebox'
import { NO_USAGE } from '../../cgroups/runtime-usage.ts'
import type { Clock } from '../../clock.ts'
import { parseRuntimeName, type RuntimeName } from '../../domain/runtime-name.ts'
import { killUntilGone } from '../../processes/kill-until-gone.ts'
import { descendantsOf, identify, isAlive, listProcesses, type ProcessIdentity } from '../../processes/process-table.ts'
import { writeJson } from '../../state/json-file.ts'
import type { Layout } from '../../state/layout.ts'
import type { Command, LaunchGate } from '../../warden/warden.ts'
import type { Driver } from '../contract.ts'
import { fakeScriptOf } from './script.ts'

const limitParser = parserOf(closed({ limit_fails: Type.Union([Type.String(), Type.Null()]) }))

export function fakeDriver(layout: Layout, clock: Clock, gate: LaunchGate): Driver {
  const scriptFile = (name: RuntimeName): string => join(layout.runtime(name).dir, 'script.json')
  const prefix = `${layout.runtimes}/`
  const guests = new Map<RuntimeName, ProcessIdentity>()

  /** `sleep` stands in for a guest that never dials: it has the path as its name, and no child that could be missed when it is killed. */
  const nameIn = (argv: readonly string[]): RuntimeName | undefined => {
    const channel = argv.find((argument) => argument.startsWith(prefix) && argument.endsWith('/channel.sock'))
    return channel === undefined ? undefined : parseRuntimeName(channel.slice(prefix.length).split('/')[0] ?? '')?.name
  }
  const pidsOf = (name: RuntimeName): number[] => listProcesses((argv) => nameIn(argv) === name).map(({ pid }) => pid)

  return {
    name: 'fake',
    needs: { network: false, template: false, identity: false },
    async probe() {
      return { name: 'fake', proved: true, version: '1', detail: 'Processes of this machine, without isolation.', probe_ms: 0 }
    },
    async prepare({ name, spec }) {
      await writeJson(scriptFile(name), { limit_fails: fakeScriptOf(spec).limit_fails ?? null })
    },
    async launch({ paths, spec }, signal, spawned) {
      const script = fakeScriptOf(spec)
      if (script.launch_delay_ms !== undefined) await clock.wait(script.launch_delay_ms, signal)
      if (script.launch_fails !== undefined) throw new Error(script.launch_fails)
      const guest: Command = [paths.agent, '--channel', paths.socket]
      const seconds = `${(script.exit_after_ms ?? 0) / 1_000}`
      const command: Command = script.guest_silent === true ? ['bash', '-c', 'exec -a "$0" sleep 1000000', paths.socket] : guest
      const timed: Command = script.exit_after_ms === undefined ? command : ['timeout', '--signal=KILL', seconds, ...command]
      const [program, ...args] = gate.through(timed, 'become')
      const child = spawn(program, args, { detached: true, stdio: 'ignore', cwd: '/', env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8' } })
      spawned()
      await once(child, 'spawn')
      child.unref()
    },
    find(name) {
      const known = guests.get(name)
      if (known !== undefined && isAlive(known)) return known
      guests.delete(name)
      const pid = pidsOf(name).at(-1)
      const found = pid === undefined ? undefined : identify(pid)
      if (found !== undefined) guests.set(name, found)
      return found
    },
    async limit({ name }) {
      const text = await readFile(scriptFile(name), 'utf8').catch(() => undefined)
      const failure = text === undefined ? null : limitParser.parse(JSON.parse(text)).limit_fails
      if (failure !== null) throw new Error(failure)
    },
    evidence: () => ({ driver: 'fake', isolation: 'none' }),
    // Nothing separates it from the machine, so nothing counts it apart.
    usage: () => NO_USAGE,
    postMortem: () => null,
    async kill(name) {
      guests.delete(name)
      const left = (): number[] => {
        const pids = pidsOf(name)
        return [...pids, ...descendantsOf(pids)].filter((pid) => identify(pid) !== undefined)
      }
      await killUntilGone(left, clock, LIMITS.hostDestroyMs)
    },
    async clean() {},
    traces() {
      const names = listProcesses((argv) => nameIn(argv) !== undefined).flatMap(({ argv }) => nameIn(argv) ?? [])
      return { process: new Set(names), cgroup: new Set(), runtime_state: new Set() }
    },
  }
}
