/** What can be done to a node of the lab, one command each. */
import { spawn } from 'node:child_process'
import {
  clockEnvironment,
  DEFAULT_SLOW_KBIT,
  fillNode,
  healNode,
  inNode,
  killInLab,
  type LabState,
  labOf,
  nodeEnvironment,
  nodeOf,
  partitionNode,
  pauseNode,
  requireRoot,
  restartNode,
  resumeNode,
  secondsOf,
  skewNode,
  slowNode,
} from '@sandglass/supervisor/lab'
import { COMMON_OPTIONS, noMoreThan, operand, parseArguments, positiveInteger } from '../arguments.ts'
import type { Command } from '../command.ts'
import { exitCodeOfSignal } from '../exit-code.ts'
import type { Io } from '../io.ts'
import { UsageError } from '../usage-error.ts'

type Act = (state: LabState, operands: readonly string[]) => void | Promise<void>

/** A command whose arguments are operands alone. */
function simple(usage: string, help: string, act: Act): { readonly command: Command } {
  const run = async (_: Io, argv: readonly string[]): Promise<number> => {
    const { operands } = parseArguments(argv, COMMON_OPTIONS)
    requireRoot()
    await act(labOf(process.env), operands)
    return 0
  }
  return { command: { usage, help, run } }
}

/** The one node that is meant. */
function onlyNode(operands: readonly string[]): string {
  noMoreThan(operands, 1)
  return operand(operands, 0, 'NODE')
}

export const partition = simple(
  'lab partition NODE [from NODE…]',
  `Drops everything between a node and the others, in both directions, also of connections that stand: both sides see silence. Without \`from\` it is cut off from
everybody, and from you.`,
  (state, [node = '', from, ...others]) => {
    if (node === '') throw new UsageError('NODE is missing')
    if (from !== undefined && (from !== 'from' || others.length === 0)) throw new UsageError('lab partition NODE from NODE… names the other side')
    partitionNode(state, node, others)
  },
)

export const heal = simple(
  'lab heal [NODE…]',
  'Undoes partition, slow, skew, fill-disk and pause of these nodes, or of all. What is dead stays dead: lab restart starts it.',
  (state, operands) => {
    for (const node of operands.length === 0 ? state.plan.nodes.map(({ name }) => name) : operands) healNode(state, node)
  },
)

export const pause = simple(
  'lab pause NODE',
  'Stops the process of a role (SIGSTOP), as a machine in trouble does; what it has started goes on. lab resume lets it go on.',
  (state, operands) => pauseNode(state, onlyNode(operands)),
)

export const resume = simple('lab resume NODE', 'Lets a paused role go on.', (state, operands) => resumeNode(state, onlyNode(operands)))

export const slow = simple(
  'lab slow NODE [KBIT]',
  `Lets a node send and receive so many kilobits a second, ${DEFAULT_SLOW_KBIT} by default. lab heal makes it fast again.`,
  (state, operands) => {
    noMoreThan(operands, 2)
    slowNode(state, operand(operands, 0, 'NODE'), positiveInteger('KBIT', operands[1]) ?? DEFAULT_SLOW_KBIT)
  },
)

export const skew = simple(
  'lab skew NODE OFFSET',
  `Sets a node's wall clock so much ahead of this machine's: +3h, -90m, 30s, 0. It takes effect within a second, while the node runs. Its monotonic clock and
its timers stay as they are, as on a machine whose clock is set. Needs Debian's faketime.`,
  (state, operands) => {
    noMoreThan(operands, 2)
    skewNode(state, operand(operands, 0, 'NODE'), secondsOf(operand(operands, 1, 'OFFSET')))
  },
)

export const fillDisk = simple('lab fill-disk NODE', 'Leaves a host no byte on its disk. lab heal gives it back.', (state, operands) =>
  fillNode(state, onlyNode(operands)),
)

const KILL_OPTIONS = { ...COMMON_OPTIONS, role: { type: 'boolean' } } as const

export const kill: { readonly command: Command } = {
  command: {
    usage: 'lab kill NODE [--role]',
    help: `Kills everything on a node at once, sandboxes too, as when a machine loses its power. It stays dead until lab restart.

  --role   only the role's own process; sandboxes live on`,
    run: async (_, argv) => {
      const { values, operands } = parseArguments(argv, KILL_OPTIONS)
      requireRoot()
      await killInLab(labOf(process.env), onlyNode(operands), values.role === true ? 'role' : 'node')
      return 0
    },
  },
}

export const restart = simple('lab restart NODE', "Starts a node's role, ending it first where it runs, and waits until it serves.", (state, operands) =>
  restartNode(state, onlyNode(operands)),
)

export const exec: { readonly command: Command } = {
  command: {
    usage: 'lab exec NODE -- COMMAND [ARGUMENT…]',
    help: 'Runs a command of this machine in the network of a node, as root, with the environment of its role: ping, curl, ss, nft.',
    run: async (io, argv) => {
      const separator = argv.indexOf('--')
      const program = separator === -1 ? [] : argv.slice(separator + 1)
      const { operands } = parseArguments(separator === -1 ? argv : argv.slice(0, separator), COMMON_OPTIONS)
      if (program.length === 0) throw new UsageError('the command is missing: lab exec NODE -- COMMAND')
      requireRoot()
      const { plan, environment } = labOf(process.env)
      const node = nodeOf(plan, onlyNode(operands))
      const [file = '', ...args] = inNode(plan, node, program)
      const child = spawn(file, args, {
        stdio: 'inherit',
        env: { ...process.env, ...nodeEnvironment(plan, node, environment), ...clockEnvironment(plan.home, node.name) },
      })
      const stop = io.onSignal((signal) => child.kill(`SIG${signal}`))
      try {
        return await new Promise<number>((resolve, reject) => {
          child.once('error', reject)
          child.once('exit', (code, signal) => resolve(code ?? exitCodeOfSignal((signal ?? 'SIGKILL').replace(/^SIG/, ''))))
        })
      } finally {
        stop()
      }
    },
  },
}
