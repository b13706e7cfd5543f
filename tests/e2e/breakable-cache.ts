/**
 * A cache of an installation's own whose runtime can be made to fail, and the host's guest agent, which can be made to die at once.
 *
 * Everything in the cache leads to the machine's real one; only the runtime is a small script in front of the real one, which asks a
 * directory whether it has to fail. The guest agent is broken where sandboxes are linked to it: in the host agent's state directory.
 */
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const FAILURES = ['the runtime does not run', 'the runtime dies after its start', 'the guest agent ends at once'] as const
export type Failure = (typeof FAILURES)[number]

const wrapper = (folder: string, real: string): string => `#!/bin/sh
for word in "$@"; do
  case $word in run | create) starting=1 ;; esac
done
if [ -n "\${starting-}" ] && [ -e '${folder}/refuse' ]; then
  echo 'made to fail' >&2
  exit 128
fi
if [ -n "\${starting-}" ] && [ -e '${folder}/die' ]; then
  '${real}' "$@" || exit
  for last in "$@"; do :; done
  for word in "$@"; do case $word in --root=*) exec '${real}' "$word" kill "$last" KILL ;; esac; done
fi
exec '${real}' "$@"
`

function breakGuestAgent(home: string): () => void {
  const folder = join(home, 'host/guest-agents')
  const [name, ...others] = readdirSync(folder)
  if (name === undefined || others.length > 0) throw new Error(`${folder} holds ${others.length === 0 ? 'no' : 'more than one'} guest agent.`)
  const kept = join(home, 'host/guest-agent.kept')
  renameSync(join(folder, name), kept)
  writeFileSync(join(folder, name), '#!/bin/sh\nexit 7\n', { mode: 0o755 })
  return () => renameSync(kept, join(folder, name))
}

export class BreakableCache {
  readonly path: string

  /** @param real the machine's cache */
  constructor(path: string, real: string) {
    this.path = path
    mkdirSync(join(path, 'bin'), { recursive: true })
    mkdirSync(join(path, 'templates'))
    writeFileSync(join(path, 'bin/runsc'), wrapper(path, join(real, 'bin/runsc')), { mode: 0o755 })
    for (const name of readdirSync(join(real, 'templates'))) this.#share(join(real, 'templates', name), join(path, 'templates', name))
    for (const name of readdirSync(real)) if (!existsSync(join(path, name))) symlinkSync(join(real, name), join(path, name))
  }

  /** A hard link, or a symbolic one where the cache is on another file system. */
  #share(from: string, to: string): void {
    try {
      linkSync(from, to)
    } catch {
      symlinkSync(from, to)
    }
  }

  /** @param home the installation's, which uses this cache */
  async failing<T>(failure: Failure, home: string, action: () => Promise<T>): Promise<T> {
    const undo = failure === 'the guest agent ends at once' ? breakGuestAgent(home) : this.#breakRuntime(failure)
    try {
      return await action()
    } finally {
      undo()
    }
  }

  #breakRuntime(failure: Exclude<Failure, 'the guest agent ends at once'>): () => void {
    const flag = join(this.path, failure === 'the runtime does not run' ? 'refuse' : 'die')
    writeFileSync(flag, '')
    return () => rmSync(flag)
  }
}
