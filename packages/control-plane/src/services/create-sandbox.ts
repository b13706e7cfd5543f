/**
 * Creates: one transaction for the idempotency key, the sandbox, its operation, the audit row, the event, the wake-ups, its placement where a host has
 * room at once, and the quota (guards: create.unique, create.onetx), answered only after its commit. A repeat with the same key finds what the first made.
 */
import {
  CodedError,
  type CreateSandbox,
  DEFAULT_RESOURCES,
  DEFAULT_TEMPLATE,
  type Isolation,
  LIMITS,
  newOperationId,
  newSandboxId,
  poolKeyOf,
  type Resources,
} from '@sandglass/contract'
import type { Context } from '../context.ts'
import { exactAmounts } from '../domain/amounts.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import type { PendingSandbox, Place } from '../domain/placement/plan.ts'
import { neverFits } from '../domain/placement/refusal.ts'
import { quotaRefusal } from '../domain/quota.ts'
import { chooseDriver, provesIsolation } from '../domain/sandbox/driver.ts'
import { assertNotIdShaped } from '../domain/sandbox/name.ts'
import { poolSpec } from '../domain/sandbox/runtime-spec.ts'
import { wakePlacement } from '../events/wake-bus.ts'
import type { Principal } from '../store/api-keys.ts'
import { Overtaken, type Transaction, together, violates } from '../store/database.ts'
import { findOperationOfSandbox } from '../store/operations.ts'
import { QuotaUsedUp, readQuota, takeQuota } from '../store/quotas.ts'
import { insertSandbox, NAME_INDEX, type NewSandbox } from '../store/sandboxes.ts'
import { findTemplate, type TemplateRow } from '../store/templates.ts'
import type { Fleet } from './fleet-view.ts'
import { once } from './idempotency.ts'
import { nameTaken, templateNotFound } from './not-found.ts'
import { type Placed, placeSandbox } from './place-sandbox.ts'

const ROUTE = 'POST /v1/sandboxes'

export type CreateRequest = {
  readonly principal: Principal
  readonly body: CreateSandbox
  readonly idempotencyKey: string | undefined
  readonly requestId: string
  /** Of the request's span, or what the caller gave when nothing is recorded here. */
  readonly traceparent: string | undefined
  readonly ids: CreateIds
}

/** What is made, unless an earlier request with the same key made it. */
export type CreateIds = { readonly sandboxId: string; readonly operationId: string }

export const newCreateIds = ({ config, world }: Pick<Context, 'config' | 'world'>): CreateIds => ({
  sandboxId: newSandboxId(config.region, world.random),
  operationId: newOperationId(world.random),
})

/** @returns ids of what exists now for this request, and whether an earlier request made it */
export async function createSandbox(context: Context, request: CreateRequest): Promise<CreateIds & { replayed: boolean }> {
  const { faults } = context.world
  checkBody(request.body)
  const made = await createPlaced(context, request).catch(async (error: unknown) => {
    const { tenantId, tenantName } = request.principal
    const { name } = request.body
    if (name !== undefined && violates(error, NAME_INDEX)) throw await nameTaken(context.db, tenantId, name, error)
    if (!(error instanceof QuotaUsedUp)) throw error
    throw quotaRefusal(tenantName, await readQuota(context.db, tenantId), exactAmounts(resourcesOf(request.body)))
  })
  if (!made.replayed) await faults.reach('create.committed')
  if (made.placed !== undefined) {
    await faults.reach('place.committed')
    context.desk.hand(made.placed.hostId, made.placed.due)
  }
  return made
}

type Made = CreateIds & { readonly replayed: boolean; readonly placed: Placed | undefined }

/** Where it was to be placed, somebody else was first: it is made again, and the reconciler places it. */
async function createPlaced(context: Context, request: CreateRequest): Promise<Made> {
  try {
    return await createOnce(context, request, true)
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error
    context.fleet.forget()
    return await createOnce(context, request, false)
  }
}

async function createOnce(context: Context, request: CreateRequest, mayPlace: boolean): Promise<Made> {
  const { body, principal, ids } = request
  return await context.db.transaction(async (tx) => {
    const [first, template, fleet] = await together([
      once(tx, { tenantId: principal.tenantId, route: ROUTE, key: request.idempotencyKey, body, subjectId: ids.sandboxId }),
      findTemplate(tx, ...templateOf(body)),
      context.fleet.read(tx),
      context.fleet.readSpread(tx, principal.tenantId),
    ])
    if (first.replayed) return { sandboxId: first.subjectId, operationId: await createOperationOf(tx, first.subjectId), replayed: true, placed: undefined }
    const sandbox = await describe(context, tx, request, { template, fleet })
    const choice = mayPlace ? context.fleet.choose(pendingOf(sandbox)) : undefined
    if (choice !== undefined) await context.world.faults.reach('place.planned')
    return { ...ids, replayed: false, placed: await insertRows(context, tx, request, sandbox, choice) }
  })
}

function checkBody(body: CreateSandbox): void {
  if (body.name !== undefined) assertNotIdShaped(body.name)
  const mode = body.network?.mode ?? 'none'
  if (mode !== 'none') throw new CodedError('network_mode_unavailable', `Network mode ${mode} is not available on this installation yet; use none.`)
  const envBytes = Buffer.byteLength(JSON.stringify(body.env ?? {}))
  if (envBytes > LIMITS.envJsonBytes) {
    throw new CodedError('limit_exceeded', `env takes ${envBytes} bytes as JSON; at most ${LIMITS.envJsonBytes} are allowed.`, {
      limit: { name: 'envJsonBytes', value: LIMITS.envJsonBytes },
    })
  }
}

async function createOperationOf(tx: Transaction, sandboxId: string): Promise<string> {
  const operation = await findOperationOfSandbox(tx, sandboxId, 'sandbox.create')
  if (operation === undefined) throw new InvariantBroken(`sandbox ${sandboxId} has no create operation`)
  return operation.id
}

/** @throws CodedError for what the installation does not have or no host could ever hold */
async function describe(
  context: Context,
  tx: Transaction,
  { body, principal, traceparent, ids }: CreateRequest,
  found: { readonly template: TemplateRow | undefined; readonly fleet: Fleet },
): Promise<NewSandbox> {
  const template = found.template ?? (await lateTemplate(context, tx, body))
  const resources = resourcesOf(body)
  const isolation = body.isolation ?? 'auto'
  const seen = mayRun(found.fleet, isolation, resources) ? found.fleet : await context.fleet.readAnew(tx)
  const driver = chooseDriver(isolation, seen.hosts)
  const never = neverFits(resources, seen.hosts)
  if (never !== undefined) throw new CodedError('unschedulable_never', never)
  return {
    id: ids.sandboxId,
    tenantId: principal.tenantId,
    name: body.name ?? null,
    region: context.config.region,
    template,
    amounts: exactAmounts(resources),
    driver,
    networkMode: 'none',
    env: body.env ?? {},
    metadata: body.metadata ?? {},
    ttlSeconds: body.ttl_seconds ?? LIMITS.ttlSecondsDefault,
    idleTimeoutSeconds: body.idle_timeout_seconds ?? null,
    onTimeout: body.on_timeout ?? 'delete',
    operationId: ids.operationId,
    poolKey: poolKeyOf(poolSpec({ driver, template, resources, networkMode: 'none' })),
    traceparent: traceparent ?? null,
    restartPolicy: body.restart_policy ?? 'never',
  }
}

/** A view that is a moment old may allow; before it refuses, it is read anew. */
function mayRun({ hosts }: Fleet, isolation: Isolation, resources: Resources): boolean {
  return hosts.length > 0 && provesIsolation(isolation, hosts) && neverFits(resources, hosts) === undefined
}

const pendingOf = (sandbox: NewSandbox): PendingSandbox => ({
  id: sandbox.id,
  tenantId: sandbox.tenantId,
  generation: 0,
  region: sandbox.region,
  driver: sandbox.driver,
  templateDigest: sandbox.template.digest,
  need: sandbox.amounts,
  avoidHostId: null,
  unschedulableReason: null,
  poolKey: sandbox.poolKey,
  recovers: false,
  isAged: false,
})

/**
 * Placed in the same transaction when a host seems to have room: one commit for both, sent behind the statements, so that the rows which many creates
 * want (pool, capacity, and last the tenant's quota) are locked no longer than Postgres needs.
 * @returns the start that is due; undefined: it is pending
 */
async function insertRows(
  context: Context,
  tx: Transaction,
  { principal, requestId }: CreateRequest,
  sandbox: NewSandbox,
  choice: Place | undefined,
): Promise<Placed | undefined> {
  if (choice === undefined) tx.wake(wakePlacement)
  const written = together([
    insertSandbox(tx, sandbox, { actor: principal.actor, requestId }),
    choice === undefined ? undefined : placeSandbox(tx, context, choice),
    takeQuota(tx, sandbox.tenantId, sandbox.amounts),
  ])
  // Answered below; a fault in between must not leave it unheard.
  written.catch(() => undefined)
  await context.world.faults.reach('create.open')
  tx.finish()
  const [, due] = await written
  return choice === undefined || due === undefined ? undefined : { hostId: choice.hostId, due }
}

const resourcesOf = (body: CreateSandbox): Resources => ({ ...DEFAULT_RESOURCES, ...body.resources })

function templateOf({ template: text = DEFAULT_TEMPLATE }: CreateSandbox): [name: string, digest: string | null] {
  const [name = text, digest] = text.split('@')
  return [name, digest ?? null]
}

async function lateTemplate(context: Context, tx: Transaction, body: CreateSandbox): Promise<TemplateRow> {
  await context.templates.run()
  const late = await findTemplate(tx, ...templateOf(body))
  if (late === undefined) throw await templateNotFound(tx, body.template ?? DEFAULT_TEMPLATE)
  return late
}
