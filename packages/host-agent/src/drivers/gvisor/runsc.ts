/**
 * The command line of `runsc`, and how its processes and files are found again.
 *
 * Every process of this installation carries `--root=<its directory>` and, last, the runtime's name in its arguments: launcher, sentry and
 * gofer alike, also while they are still coming up.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parserOf } from '@sandglass/contract'
import Type from 'typebox'
import { parseRuntimeName, RUNTIME_NAME_SHAPE, type RuntimeName } from '../../domain/runtime-name.ts'
import { argvOf, type ListedProcess, listProcesses } from '../../processes/process-table.ts'
import { runCommand } from '../../processes/run-command.ts'
import type { LaunchGate } from '../../warden/warden.ts'
import type { Launch } from '../contract.ts'

const SENTRY = 'runsc-sandbox'

export type Runsc = { readonly binary: string; readonly root: string }

export async function runscVersion(binary: string): Promise<string> {
  const text = await runCommand(binary, ['--version'])
  return /^runsc version (.+)$/m.exec(text)?.[1] ?? 'unknown'
}

/** Returns when the guest's first process has started. @throws CommandFailed */
export async function runDetached(runsc: Runsc, gate: LaunchGate, launch: Launch, signal: AbortSignal, spawned: () => void): Promise<void> {
  const { paths, spec, name } = launch
  const flags = [
    `--root=${runsc.root}`,
    `--log=${paths.log}`,
    `--panic-log=${paths.panic}`,
    '--platform=systrap',
    '--network=sandbox',
    '--net-raw=false',
    '--host-uds=open',
    // Counts processes exactly. Version 1 asks one of its seven hierarchies, chosen at random, whether a fork fits; only `pids` says no.
    '--in-sandbox-cgroup=v2',
    `--overlay2=root:dir=${paths.upper},size=${spec.resources.disk_gb * 1_024}m`,
  ]
  const [command, ...args] = gate.through([runsc.binary, ...flags, 'run', '--detach', '--bundle', paths.bundle, name])
  try {
    // The guest's first process inherits these descriptors, so they are the null device: a pipe would break, a file would fill the disk.
    await runCommand(command, args, { signal, detached: true, onSpawn: spawned })
  } catch (cause) {
    signal.throwIfAborted()
    throw new Error(`the runtime did not start: ${await lastError(paths.log)}`, { cause })
  }
}

async function lastError(log: string): Promise<string> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return text.trim().split('\n').at(-1)?.slice(-512) ?? ''
}

/** All processes of the installation, or of one runtime. */
export function runscProcesses(runsc: Runsc, name?: RuntimeName): ListedProcess[] {
  const root = `--root=${runsc.root}`
  return listProcesses((argv) => argv.includes(root) && (name === undefined || argv.at(-1) === name))
}

const stateParser = parserOf(Type.Object({ sandbox: Type.Object({ pid: Type.Integer({ minimum: 1 }) }) }))

/**
 * Pid of the sentry: as the runtime's state file says, when that process is what it should be, else by a look at all processes.
 * The file spares the look on every start; it is never believed alone.
 */
export function sentryPid(runsc: Runsc, name: RuntimeName): number | undefined {
  const told = toldPid(join(runsc.root, `${name}_sandbox:${name}.state`))
  if (told !== undefined) {
    const argv = argvOf(told)
    if (argv[0] === SENTRY && argv.includes(`--root=${runsc.root}`) && argv.at(-1) === name) return told
  }
  return runscProcesses(runsc, name).find(isSentry)?.pid
}

function toldPid(stateFile: string): number | undefined {
  try {
    return stateParser.parse(JSON.parse(readFileSync(stateFile, 'utf8'))).sandbox.pid
  } catch {
    return undefined
  }
}

const isSentry = (process: ListedProcess): boolean => process.argv[0] === SENTRY

export function nameOf(process: ListedProcess): RuntimeName | undefined {
  return parseRuntimeName(process.argv.at(-1) ?? '')?.name
}

/** Of `<name>_sandbox:<name>.state`, `.lock` and `runsc-<name>.sock`. */
const STATE_FILE = new RegExp(`^(?:runsc-)?(${RUNTIME_NAME_SHAPE})(?:_sandbox:.*|\\.sock)$`)

export function stateFiles(runsc: Runsc): { file: string; name: RuntimeName }[] {
  let files: string[] = []
  try {
    files = readdirSync(runsc.root)
  } catch {
    return []
  }
  return files.flatMap((file) => {
    const name = parseRuntimeName(STATE_FILE.exec(file)?.[1] ?? '')?.name
    return name === undefined ? [] : [{ file, name }]
  })
}

export async function removeState(runsc: Runsc, name: RuntimeName): Promise<void> {
  for (const found of stateFiles(runsc)) if (found.name === name) await rm(join(runsc.root, found.file), { force: true })
}
