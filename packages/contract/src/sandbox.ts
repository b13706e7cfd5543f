/** The sandbox as clients see it: what they ask for, and what it is. */
import Type, { type Static } from 'typebox'
import { PATTERNS } from './forms.ts'
import { ID_PATTERNS } from './ids.ts'
import { LIMITS } from './limits.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const TimeSchema = Type.String({ description: 'RFC 3339, UTC.' })

export const NAME_PATTERN = PATTERNS.sandboxName
export const SandboxNameSchema = Type.String({
  pattern: NAME_PATTERN,
  description: 'Unique among sandboxes of the tenant that are not deleted. Never shaped like an id.',
})

export const MetadataSchema = Type.Record(
  Type.String({ pattern: `^[A-Za-z0-9._/-]{1,${LIMITS.metadataKeyCharacters}}$` }),
  Type.String({ maxLength: LIMITS.metadataValueCharacters }),
  { additionalProperties: false, maxProperties: LIMITS.metadataEntries },
)

export const EnvSchema = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${LIMITS.envKeyCharacters - 1}}$` }),
  Type.String({ maxLength: LIMITS.envValueBytes, pattern: PATTERNS.noNul }),
  { additionalProperties: false, maxProperties: LIMITS.envEntries },
)

export const ResourcesSchema = closed({
  vcpu: Type.Number({ minimum: LIMITS.vcpuMin, maximum: LIMITS.vcpuMax, multipleOf: 0.01, description: 'Virtual CPUs, fractions allowed.' }),
  memory_mb: Type.Integer({ minimum: LIMITS.memoryMbMin, maximum: LIMITS.memoryMbMax, description: 'MiB.' }),
  disk_gb: Type.Integer({ minimum: LIMITS.diskGbMin, maximum: LIMITS.diskGbMax, description: 'GiB of writable root layer.' }),
})
export type Resources = Static<typeof ResourcesSchema>

/** What a sandbox gets when it does not say. */
export const DEFAULT_TEMPLATE = 'base'
export const DEFAULT_RESOURCES: Resources = { vcpu: 0.5, memory_mb: 512, disk_gb: 2 }

export const IsolationSchema = oneOf(['auto', 'gvisor', 'fake', 'container', 'microvm'])
export type Isolation = Static<typeof IsolationSchema>

/**
 * What becomes of a sandbox whose runtime ended without being told to. `never`: it is `failed`. `on_host_loss`: it is placed again when its host was
 * restarted or could not keep it. `always`: also when the runtime ended by itself, for example because it used more memory than it has.
 * Each time a new generation with an empty writable layer, after a pause that doubles (`restartBackoffMs`), at most `restartsInARow` times in a row.
 */
export const RESTART_POLICIES = ['never', 'on_host_loss', 'always'] as const
export const RestartPolicySchema = oneOf(RESTART_POLICIES, {
  description:
    'When its runtime ends without being told to: `never`: it is failed; `on_host_loss`: placed again when the host was at fault; `always`: placed again whatever ended it. Each time with an empty writable layer.',
})
export type RestartPolicy = Static<typeof RestartPolicySchema>

/** What its own end of time does to a sandbox: that of its life (`ttl_seconds`) and that of nobody using it (`idle_timeout_seconds`). */
export const TIMEOUT_ACTIONS = ['delete', 'stop'] as const
export const TimeoutActionSchema = oneOf(TIMEOUT_ACTIONS, {
  description: 'What happens at `expires_at` and when it is idle: it is deleted, or stopped and its record kept for `stoppedLifeSeconds`.',
})
export type TimeoutAction = Static<typeof TimeoutActionSchema>

export const NetworkModeSchema = oneOf(['none', 'allow_list', 'open'])

export const CreateSandboxSchema = closed(
  {
    template: Type.Optional(Type.String({ pattern: PATTERNS.templateReference, description: 'Template name, or name@digest. Default `base`.' })),
    name: Type.Optional(SandboxNameSchema),
    resources: Type.Optional(Type.Partial(ResourcesSchema, { additionalProperties: false })),
    isolation: Type.Optional(IsolationSchema),
    network: Type.Optional(closed({ mode: NetworkModeSchema })),
    env: Type.Optional(EnvSchema),
    metadata: Type.Optional(MetadataSchema),
    ttl_seconds: Type.Optional(Type.Integer({ minimum: LIMITS.ttlSecondsMin, maximum: LIMITS.ttlSecondsMax })),
    idle_timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: LIMITS.idleTimeoutSecondsMin,
        maximum: LIMITS.ttlSecondsMax,
        description:
          'Ends it when nobody has used it for so long: no command, file request or terminal went on. What runs in it without a client does not count. Default: never.',
      }),
    ),
    on_timeout: Type.Optional(TimeoutActionSchema),
    restart_policy: Type.Optional(RestartPolicySchema),
  },
  { $id: 'CreateSandbox' },
)
export type CreateSandbox = Static<typeof CreateSandboxSchema>

export const SANDBOX_STATUSES = ['pending', 'assigned', 'starting', 'ready', 'stopping', 'stopped', 'failed', 'terminating', 'terminated'] as const
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number]
export const SandboxStatusSchema = oneOf(SANDBOX_STATUSES)

/** Where what was written in a sandbox is. It lives and goes with the runtime. */
export const WRITABLE_LAYERS = ['none', 'present', 'gone'] as const
export type WritableLayer = (typeof WRITABLE_LAYERS)[number]
const WRITABLE_LAYER_OF: Readonly<Record<SandboxStatus, WritableLayer>> = {
  pending: 'none',
  assigned: 'none',
  starting: 'none',
  ready: 'present',
  stopping: 'gone',
  stopped: 'gone',
  failed: 'gone',
  terminating: 'gone',
  terminated: 'gone',
}
export const writableLayerOf = (status: SandboxStatus): WritableLayer => WRITABLE_LAYER_OF[status]

export const SandboxSchema = closed(
  {
    id: Type.String({ pattern: ID_PATTERNS.sandbox }),
    name: nullable(Type.String()),
    status: SandboxStatusSchema,
    status_reason: nullable(Type.String({ description: 'Why it is failed or ended: a code, then a sentence.' })),
    unschedulable_reason: nullable(Type.String({ description: 'Why it is still pending.' })),
    desired: oneOf(['running', 'stopped', 'deleted']),
    writable_layer: oneOf(WRITABLE_LAYERS, {
      description:
        '`present`: what was written since the last start is there. `gone`: it went with the runtime; a start begins with an empty one. `none`: the runtime that will have an empty one is not up yet.',
    }),
    restart_policy: RestartPolicySchema,
    restarts: Type.Integer({ minimum: 0, description: 'Restarts by policy in a row, since a start or since it last ran for `restartSteadySeconds`.' }),
    generation: Type.Integer({ minimum: 0, description: 'Advances on every change of what is wanted and on every placement.' }),
    template: closed({ name: Type.String(), digest: Type.String() }),
    resources: ResourcesSchema,
    isolation: nullable(
      closed({
        driver: Type.String({ description: 'The driver that runs it.' }),
        evidence: Type.Record(Type.String(), Type.String(), { description: 'What the host proved: kernel, runtime version, boot id.' }),
      }),
    ),
    network: closed({ mode: NetworkModeSchema }),
    env_names: Type.Array(Type.String(), { description: 'Names only; values are never shown.' }),
    metadata: Type.Record(Type.String(), Type.String()),
    region: Type.String(),
    host_id: nullable(Type.String()),
    gateway_url: Type.String({ description: 'Base URL of exec, files and terminals of this sandbox.' }),
    gateway_urls: Type.Array(Type.String(), {
      minItems: 1,
      description: 'Every gateway that serves it, `gateway_url` first. Any will do when one does not answer.',
    }),
    ttl_seconds: Type.Integer(),
    idle_timeout_seconds: nullable(Type.Integer()),
    on_timeout: TimeoutActionSchema,
    created_at: TimeSchema,
    ready_at: nullable(TimeSchema),
    expires_at: Type.String({ description: 'RFC 3339, UTC. When its life ends (`on_timeout`); a stopped one is kept longer (`stoppedLifeSeconds`).' }),
    idle_at: nullable(Type.String({ description: 'RFC 3339, UTC. When it will have been idle for too long, unless it is used until then.' })),
    ended_at: nullable(Type.String({ description: 'RFC 3339, UTC. When it was stopped, failed or deleted; a start clears it.' })),
    start_path: nullable(oneOf(['claimed', 'cold'], { description: 'How it came up: from a warm pool, or booted for it.' })),
    start_timings_ms: nullable(Type.Record(Type.String(), Type.Number(), { description: 'Phases of the start, milliseconds.' })),
    operation_id: nullable(Type.String({ description: 'The latest operation on it.' })),
  },
  { $id: 'Sandbox' },
)
export type Sandbox = Static<typeof SandboxSchema>

export const UpdateSandboxSchema = closed(
  { metadata: Type.Optional(MetadataSchema), name: Type.Optional(nullable(SandboxNameSchema)) },
  { $id: 'UpdateSandbox' },
)
export type UpdateSandbox = Static<typeof UpdateSandboxSchema>

export const ExtendSandboxSchema = closed(
  {
    ttl_seconds: Type.Integer({
      minimum: LIMITS.ttlSecondsMin,
      maximum: LIMITS.ttlSecondsMax,
      description: 'New life from now on. Never shortens the deadline.',
    }),
  },
  { $id: 'ExtendSandbox' },
)
export type ExtendSandbox = Static<typeof ExtendSandboxSchema>
