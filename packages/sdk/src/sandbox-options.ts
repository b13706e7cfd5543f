/** What a create asks for, and its form on the wire. */
import type { CreateSandbox } from '@sandglass/contract/sandbox'
import type { Sandglass } from './client.ts'
import { type Known, onlyKnown } from './known-options.ts'
import type { CallOptions } from './transport.ts'

export type CreateSandboxOptions = CallOptions & {
  /** Name, or `name@sha256:…`. Default `base`. */
  readonly template?: string | undefined
  /** Unique among sandboxes of the tenant that are not deleted; lower-case letters, digits, `-`. */
  readonly name?: string | undefined
  /** Defaults: 0.5 vCPU, 512 MiB, 2 GiB. */
  readonly resources?: { readonly vcpu?: number | undefined; readonly memoryMb?: number | undefined; readonly diskGb?: number | undefined } | undefined
  readonly isolation?: CreateSandbox['isolation'] | undefined
  readonly network?: CreateSandbox['network'] | undefined
  /** Environment of every process in it. */
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Seconds until its life ends, see `onTimeout`. Default 3,600; `extend` moves it. While it is stopped the record is kept for 30 days instead. */
  readonly ttlSeconds?: number | undefined
  /** Ends it when nobody has used it for so many seconds, at least 60. What runs in it without a client does not count. Default: never. */
  readonly idleTimeoutSeconds?: number | undefined
  /** At the end of either time: it is deleted, or stopped and can be started again. Default `delete`. */
  readonly onTimeout?: CreateSandbox['on_timeout'] | undefined
  /** What happens when its runtime ends without being told to. Default `never`: it is failed. Each restart has an empty writable layer. */
  readonly restartPolicy?: CreateSandbox['restart_policy'] | undefined
  /** A repeat with the same key is the same sandbox. Default: a fresh one per call, so that the SDK's own repeats are safe. */
  readonly idempotencyKey?: string | undefined
  /** Default: a client from the environment. */
  readonly client?: Sandglass | undefined
}

type Resources = NonNullable<CreateSandboxOptions['resources']>

const RESOURCES: Known<Resources> = { vcpu: true, memoryMb: true, diskGb: true }
const OPTIONS: Known<CreateSandboxOptions & { readonly wait?: boolean }> = {
  template: true,
  name: true,
  resources: true,
  isolation: true,
  network: true,
  env: true,
  metadata: true,
  ttlSeconds: true,
  idleTimeoutSeconds: true,
  onTimeout: true,
  restartPolicy: true,
  idempotencyKey: true,
  client: true,
  wait: true,
  signal: true,
  timeoutMs: true,
}

/** @throws SandglassError `invalid_request` for an option that there is not */
export function wireCreate(options: CreateSandboxOptions): CreateSandbox {
  const { resources } = options
  onlyKnown('Sandbox.create', options, OPTIONS)
  if (resources !== undefined) onlyKnown('resources', resources, RESOURCES)
  return {
    ...(options.template === undefined ? {} : { template: options.template }),
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(resources === undefined
      ? {}
      : {
          resources: {
            ...(resources.vcpu === undefined ? {} : { vcpu: resources.vcpu }),
            ...(resources.memoryMb === undefined ? {} : { memory_mb: resources.memoryMb }),
            ...(resources.diskGb === undefined ? {} : { disk_gb: resources.diskGb }),
          },
        }),
    ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
    ...(options.network === undefined ? {} : { network: options.network }),
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
    ...(options.metadata === undefined ? {} : { metadata: { ...options.metadata } }),
    ...(options.ttlSeconds === undefined ? {} : { ttl_seconds: options.ttlSeconds }),
    ...(options.idleTimeoutSeconds === undefined ? {} : { idle_timeout_seconds: options.idleTimeoutSeconds }),
    ...(options.onTimeout === undefined ? {} : { on_timeout: options.onTimeout }),
    ...(options.restartPolicy === undefined ? {} : { restart_policy: options.restartPolicy }),
  }
}
