/** Options of `run` and `create` that say what sandbox is wanted. */
import { RESTART_POLICIES, TIMEOUT_ACTIONS } from '@sandglass/contract/sandbox'
import type { CreateSandboxOptions } from '@sandglass/sdk'
import { oneOfWords, parseEnvironment, positive, positiveInteger, SERVER_OPTIONS, type Values } from './arguments.ts'
import type { Io } from './io.ts'
import { UsageError } from './usage-error.ts'

export const SANDBOX_OPTIONS = {
  ...SERVER_OPTIONS,
  template: { type: 'string' },
  name: { type: 'string' },
  env: { type: 'string', short: 'e', multiple: true },
  metadata: { type: 'string', multiple: true },
  cpu: { type: 'string' },
  memory: { type: 'string' },
  disk: { type: 'string' },
  ttl: { type: 'string' },
  'idle-timeout': { type: 'string' },
  'on-timeout': { type: 'string' },
  restart: { type: 'string' },
  isolation: { type: 'string' },
  network: { type: 'string' },
} as const

export const SANDBOX_OPTIONS_HELP = `  --template T        default base; T or T@sha256:…
  --name NAME         usable wherever an id is, free again when it is deleted
  --env, -e K=V       environment of every process in it; K alone takes the value it has here. Repeatable
  --metadata K=V      repeatable
  --cpu N             virtual CPUs, fractions allowed. Default 0.5
  --memory MB         MiB. Default 512
  --disk GB           GiB of writable disk. Default 2
  --ttl S             seconds until its life ends. Default 3600
  --idle-timeout S    ends it when nobody has used it for so many seconds. Default never
  --on-timeout WHAT   at the end of either: ${TIMEOUT_ACTIONS.join(' or ')}. Default delete
  --restart POLICY    when its runtime ends without being told to: ${RESTART_POLICIES.join(', ')};
                      with an empty writable layer. Default never: it is failed
  --isolation I       auto, gvisor or fake
  --network MODE      none (the only one yet)`

type SandboxValues = Values<typeof SANDBOX_OPTIONS>

function parseMetadata(pairs: readonly string[] | undefined): Record<string, string> | undefined {
  if (pairs === undefined) return undefined
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new UsageError(`--metadata takes KEY=VALUE, not '${pair}'`)
      return [pair.slice(0, equals), pair.slice(equals + 1)]
    }),
  )
}

/** Ranges are the server's to check: its answer names the limit. Here only what is no number at all is refused. */
export function sandboxRequest(io: Io, values: SandboxValues): CreateSandboxOptions {
  const network = oneOfWords('--network', values.network, ['none', 'allow_list', 'open'])
  return {
    template: values.template,
    name: values.name,
    env: parseEnvironment(values.env, io.environment),
    metadata: parseMetadata(values.metadata),
    resources: { vcpu: positive('--cpu', values.cpu), memoryMb: positiveInteger('--memory', values.memory), diskGb: positiveInteger('--disk', values.disk) },
    ttlSeconds: positiveInteger('--ttl', values.ttl),
    idleTimeoutSeconds: positiveInteger('--idle-timeout', values['idle-timeout']),
    onTimeout: oneOfWords('--on-timeout', values['on-timeout'], TIMEOUT_ACTIONS),
    restartPolicy: oneOfWords('--restart', values.restart, RESTART_POLICIES),
    isolation: oneOfWords('--isolation', values.isolation, ['auto', 'gvisor', 'fake', 'container', 'microvm']),
    network: network === undefined ? undefined : { mode: network },
  }
}
