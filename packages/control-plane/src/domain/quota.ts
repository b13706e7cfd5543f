/** The sentence for a quota that is used up: which one, how much of it is in use, how much was asked. */
import { CodedError } from '@sandglass/contract'
import { type ExactAmounts, grouped } from './amounts.ts'

export type QuotaUse = {
  readonly running_sandboxes_limit: number
  readonly running_sandboxes_used: number
  readonly vcpu_milli_limit: number
  readonly vcpu_milli_used: number
  readonly memory_mb_limit: number
  readonly memory_mb_used: number
  readonly disk_gb_limit: number
  readonly disk_gb_used: number
  readonly kept_sandboxes_limit: number
  readonly kept_sandboxes_used: number
  readonly fair_weight: number
}

const OR_RAISE = 'or have the operator raise the tenant’s row in `quotas`.'

export function quotaRefusal(tenant: string, quota: QuotaUse | undefined, need: ExactAmounts): CodedError {
  if (quota === undefined) return new CodedError('quota_exceeded', `Tenant ${tenant} has no quota. Have the operator add its row in \`quotas\`.`)
  if (quota.running_sandboxes_used + 1 > quota.running_sandboxes_limit) {
    return refusal(`Tenant ${tenant} runs ${quota.running_sandboxes_used} of ${quota.running_sandboxes_limit} sandboxes. End one, ${OR_RAISE}`, {
      name: 'running_sandboxes',
      value: quota.running_sandboxes_limit,
    })
  }
  const resources = [
    { name: 'vcpu', used: quota.vcpu_milli_used / 1_000, limit: quota.vcpu_milli_limit / 1_000, need: need.vcpuMilli / 1_000 },
    { name: 'memory_mb', used: quota.memory_mb_used, limit: quota.memory_mb_limit, need: need.memoryMb },
    { name: 'disk_gb', used: quota.disk_gb_used, limit: quota.disk_gb_limit, need: need.diskGb },
  ]
  const short = resources.find((resource) => resource.used + resource.need > resource.limit)
  if (short === undefined && quota.kept_sandboxes_used >= quota.kept_sandboxes_limit) {
    const used = `${grouped(quota.kept_sandboxes_used)} of ${grouped(quota.kept_sandboxes_limit)}`
    return refusal(`Tenant ${tenant} keeps ${used} sandboxes that are stopped or failed. Delete one, ${OR_RAISE}`, {
      name: 'kept_sandboxes',
      value: quota.kept_sandboxes_limit,
    })
  }
  if (short === undefined) {
    return new CodedError('quota_exceeded', `The quota of tenant ${tenant} was used up for a moment. Try again.`, { retryAfterSeconds: 1 })
  }
  return refusal(
    `Tenant ${tenant} uses ${grouped(short.used)} of ${grouped(short.limit)} ${short.name}, and this asks for ${grouped(short.need)} more. End something, ${OR_RAISE}`,
    { name: short.name, value: short.limit },
  )
}

const refusal = (detail: string, limit: { name: string; value: number }): CodedError =>
  new CodedError('quota_exceeded', detail, { limit, retryAfterSeconds: 5 })
