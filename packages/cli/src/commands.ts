/** The commands by name. Their code is loaded when they are called. */
import type { CommandEntry } from './command.ts'

export const COMMANDS: readonly CommandEntry[] = [
  { name: 'up', summary: 'start the installation on this machine', load: () => import('./commands/up.ts') },
  { name: 'down', summary: 'stop it; sandboxes stay unless --sandboxes', load: () => import('./commands/down.ts') },
  { name: 'status', summary: 'roles, hosts, capacity, last failures', load: () => import('./commands/status.ts') },
  { name: 'logs', summary: 'what the roles wrote', load: () => import('./commands/logs.ts') },
  { name: 'run', summary: 'create a sandbox, run a command, delete it', load: () => import('./commands/run.ts') },
  { name: 'create', summary: 'create a sandbox', load: () => import('./commands/create.ts') },
  { name: 'ls', summary: 'list sandboxes', load: () => import('./commands/ls.ts') },
  { name: 'top', summary: 'what running sandboxes use, live', load: () => import('./commands/top.ts') },
  { name: 'inspect', summary: 'everything about a sandbox', load: () => import('./commands/inspect.ts') },
  { name: 'rm', summary: 'delete sandboxes', load: () => import('./commands/rm.ts') },
  { name: 'stop', summary: 'stop sandboxes; their records stay', load: () => import('./commands/stop.ts') },
  { name: 'start', summary: 'start sandboxes that are stopped or failed', load: () => import('./commands/start.ts') },
  { name: 'extend', summary: 'move the deadline of a sandbox', load: () => import('./commands/extend.ts') },
  { name: 'exec', summary: 'run a command in a sandbox', load: () => import('./commands/exec.ts') },
  { name: 'ps', summary: 'list processes of a sandbox', load: () => import('./commands/ps.ts') },
  { name: 'kill', summary: 'signal a process and its descendants', load: () => import('./commands/kill.ts') },
  { name: 'output', summary: 'output of a process, from any byte on', load: () => import('./commands/output.ts') },
  { name: 'shell', summary: 'a terminal in a sandbox', load: () => import('./commands/shell.ts') },
  { name: 'cp', summary: 'copy files and trees in and out', load: () => import('./commands/cp.ts') },
  { name: 'events', summary: 'what becomes of sandboxes, as it happens', load: () => import('./commands/events.ts') },
  { name: 'watch', summary: 'changes of files in a sandbox', load: () => import('./commands/watch.ts') },
  { name: 'capacity', summary: 'what hosts offer, and what waits for them', load: () => import('./commands/capacity.ts') },
  { name: 'quota', summary: 'what your tenant may hold, and holds', load: () => import('./commands/quota.ts') },
  { name: 'host ls', summary: 'list hosts', load: () => import('./commands/host-ls.ts') },
  { name: 'host inspect', summary: 'everything about a host, and how far its drain is', load: () => import('./commands/host-inspect.ts') },
  { name: 'host label', summary: 'set and take away labels', load: () => import('./commands/host-label.ts') },
  { name: 'host cordon', summary: 'place nothing more on a host', load: () => import('./commands/host-cordon.ts') },
  { name: 'host uncordon', summary: 'use a host again; calls off its drain', load: () => import('./commands/host-uncordon.ts') },
  { name: 'host drain', summary: 'empty a host before a deadline', load: () => import('./commands/host-drain.ts') },
  { name: 'host rm', summary: 'remove a host on which nothing is left', load: () => import('./commands/host-rm.ts') },
  { name: 'host join', summary: 'make this machine a host of an installation elsewhere', load: () => import('./commands/host-join.ts') },
  { name: 'host token create', summary: 'make a token with which a machine joins, once', load: () => import('./commands/host-token-create.ts') },
  { name: 'host token ls', summary: 'list join tokens', load: () => import('./commands/host-token-ls.ts') },
  { name: 'host token revoke', summary: 'revoke a join token', load: () => import('./commands/host-token-revoke.ts') },
  { name: 'template ls', summary: 'list templates', load: () => import('./commands/template-ls.ts') },
  { name: 'key create', summary: 'create an API key; shown once', load: () => import('./commands/key-create.ts') },
  { name: 'key ls', summary: 'list API keys', load: () => import('./commands/key-ls.ts') },
  { name: 'key revoke', summary: 'revoke an API key', load: () => import('./commands/key-revoke.ts') },
  { name: 'config ls', summary: 'list profiles: servers and keys by name', load: () => import('./commands/config-ls.ts') },
  { name: 'config get', summary: 'show a profile', load: () => import('./commands/config-get.ts') },
  { name: 'config set', summary: 'make or change a profile', load: () => import('./commands/config-set.ts') },
  { name: 'config use', summary: 'choose the current profile', load: () => import('./commands/config-use.ts') },
  { name: 'config rm', summary: 'forget a profile', load: () => import('./commands/config-rm.ts') },
  { name: 'lab up', summary: 'a small fleet on this machine, to break', load: () => import('./commands/lab-up.ts') },
  { name: 'lab down', summary: 'end it; nothing is left', load: () => import('./commands/lab-down.ts') },
  { name: 'lab status', summary: 'its nodes, and what was done to them', load: () => import('./commands/lab-status.ts') },
  { name: 'lab partition', summary: 'cut a node off', load: async () => (await import('./commands/lab-node.ts')).partition },
  { name: 'lab heal', summary: 'undo what was done to nodes', load: async () => (await import('./commands/lab-node.ts')).heal },
  { name: 'lab kill', summary: 'kill a node, or its role alone', load: async () => (await import('./commands/lab-node.ts')).kill },
  { name: 'lab restart', summary: 'start the role of a node', load: async () => (await import('./commands/lab-node.ts')).restart },
  { name: 'lab pause', summary: 'stop the process of a role', load: async () => (await import('./commands/lab-node.ts')).pause },
  { name: 'lab resume', summary: 'let it go on', load: async () => (await import('./commands/lab-node.ts')).resume },
  { name: 'lab slow', summary: 'take away a node’s bandwidth', load: async () => (await import('./commands/lab-node.ts')).slow },
  { name: 'lab skew', summary: 'set a node’s wall clock', load: async () => (await import('./commands/lab-node.ts')).skew },
  { name: 'lab fill-disk', summary: 'leave a host no room', load: async () => (await import('./commands/lab-node.ts')).fillDisk },
  { name: 'lab exec', summary: 'run a command in a node’s network', load: async () => (await import('./commands/lab-node.ts')).exec },
  { name: 'completion', summary: 'make bash, zsh or fish complete command lines', load: () => import('./commands/completion.ts') },
  { name: 'complete', summary: 'candidates for a line', hidden: true, load: () => import('./commands/complete.ts') },
  { name: 'doctor', summary: 'check this machine and say what to type', load: () => import('./commands/doctor.ts') },
  { name: 'bench', summary: 'measure this machine beside raw runtimes and OpenSSH', load: () => import('./commands/bench.ts') },
  { name: 'sim', summary: 'run the real code in a simulated world, on seeds', load: () => import('./commands/sim.ts') },
  { name: 'test', summary: 'run the test suite of this repository', load: () => import('./commands/test.ts') },
]

/** Finds `template ls` before `template`. @returns the entry, and the arguments behind its name */
export function findCommand(argv: readonly string[]): { readonly entry: CommandEntry; readonly rest: readonly string[] } | undefined {
  for (const words of [3, 2, 1]) {
    const name = argv.slice(0, words).join(' ')
    const entry = COMMANDS.find((candidate) => candidate.name === name && argv.length >= words)
    if (entry !== undefined) return { entry, rest: argv.slice(words) }
  }
  return undefined
}
