/**
 * How the roles' own sources are loaded into a simulation.
 *
 * Files at the edge of a role, which speak to the machine, are replaced by ones that speak to the simulated machine (`edges/`). Everything between is the
 * real code. A **defect** replaces text in a file when it is loaded: no switch for it exists in the code. Modules are loaded anew for each defect: its number
 * is in their URLs, and each import inherits it.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export type Replacement = { readonly file: string; readonly replace: string; readonly by: string }

const packages = join(import.meta.dirname, '../../..')
const edge = (name: string): string => join(packages, 'sim/src/edges', name)

/** By the path below `packages/`. */
const EDGES: Readonly<Record<string, string>> = {
  'host-agent/src/state/atomic-file.ts': edge('atomic-file.ts'),
  'host-agent/src/state/boot-id.ts': edge('boot-id.ts'),
  'host-agent/src/state/record-reserve.ts': edge('record-reserve.ts'),
  'host-agent/src/state/instance-lock.ts': edge('instance-lock.ts'),
  'host-agent/src/machine.ts': edge('machine.ts'),
  'host-agent/src/data-plane/data-plane-server.ts': edge('data-plane-server.ts'),
  'host-agent/src/data-plane/health-server.ts': edge('health-server.ts'),
  'host-agent/src/control/host-identity.ts': edge('host-identity.ts'),
  'host-agent/src/control/http-dialler.ts': edge('http-dialler.ts'),
  'host-agent/src/guest/guest-channel.ts': edge('guest-channel.ts'),
  'host-agent/src/lifecycle/make-directories.ts': edge('make-directories.ts'),
  'host-agent/src/warden/warden-process.ts': edge('warden-process.ts'),
  'host-agent/src/warden/unenforced.ts': edge('unenforced.ts'),
  'host-agent/src/census/take-census.ts': edge('take-census.ts'),
  'control-plane/src/identities/tls-peer.ts': edge('tls-peer.ts'),
}

/** Modules of Node.js, for the host agent alone. */
const NODE_EDGES: Readonly<Record<string, string>> = {
  'node:crypto': edge('crypto.ts'),
  'node:fs/promises': edge('files.ts'),
}

/** Loaded once, whatever the defect: what they hold is of the thread. */
const SHARED = ['sim/src/kernel/', 'sim/src/store/engine.ts', 'sim/src/loading/']
const ANEW = ['sim/src/', 'host-agent/src/', 'control-plane/src/']

const RUN = 'defect'

const defects: (readonly Replacement[])[] = [[]]

/** @returns the number to load modules with */
export function registerDefect(replacements: readonly Replacement[]): number {
  return defects.push(replacements) - 1
}

/** The URL of a module of this package, as it is with a defect. */
export function moduleUrl(file: string, defect: number): string {
  return `${pathToFileURL(join(packages, 'sim/src', file)).href}?${RUN}=${defect}`
}

const belowPackages = (url: string): string | undefined => {
  if (!url.startsWith('file:')) return undefined
  const path = fileURLToPath(url)
  return path.startsWith(`${packages}/`) ? path.slice(packages.length + 1) : undefined
}

const defectOf = (url: string | undefined): string | null => (url?.startsWith('file:') === true ? new URL(url).searchParams.get(RUN) : null)

let installed = false

/** Idempotent. */
export function installHooks(): void {
  if (installed) return
  installed = true
  registerHooks({
    resolve(specifier, context, next) {
      const parent = belowPackages(context.parentURL ?? '')
      const ofNode = parent?.startsWith('host-agent/src/') === true ? NODE_EDGES[specifier] : undefined
      const found = ofNode === undefined ? next(specifier, context) : { url: pathToFileURL(ofNode).href, shortCircuit: true }
      const path = belowPackages(found.url)
      const defect = defectOf(context.parentURL)
      if (path === undefined || defect === null) return found
      const replaced = parent?.startsWith('sim/src/edges/') === true ? undefined : EDGES[path]
      const url = new URL(replaced === undefined ? found.url : pathToFileURL(replaced).href)
      const isAnew = ANEW.some((folder) => path.startsWith(folder)) && !SHARED.some((folder) => path.startsWith(folder))
      if (isAnew) url.searchParams.set(RUN, defect)
      return { ...found, url: url.href }
    },
    load(url, context, next) {
      const loaded = next(url, context)
      const path = belowPackages(url)
      const replacements = defects[Number(defectOf(url) ?? 0)]?.filter(({ file }) => file === path) ?? []
      if (replacements.length === 0) return loaded
      return { ...loaded, source: replaced(path ?? url, String(loaded.source), replacements) }
    },
  })
}

/** @throws Error when a text is not there exactly once: the code has moved on, and the defect has to follow */
export function replaced(file: string, source: string, replacements: readonly Replacement[]): string {
  let text = source
  for (const { replace, by } of replacements) {
    const times = text.split(replace).length - 1
    if (times !== 1) throw new Error(`${file} holds ${JSON.stringify(replace)} ${times} times`)
    text = text.replace(replace, () => by)
  }
  return text
}

/** @param file below `packages/` @returns whether a simulation loads another one in its place */
export const isAtEdge = (file: string): boolean => EDGES[file] !== undefined

/** @param file below `packages/` */
export const sourceOf = (file: string): string => readFileSync(join(packages, file), 'utf8')
