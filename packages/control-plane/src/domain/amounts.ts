/** Amounts as they are summed: integers, so that what goes in comes out exactly. */
import type { Amounts } from '@sandglass/contract'

export type ExactAmounts = {
  /** Thousandths of a vCPU. */
  readonly vcpuMilli: number
  /** MiB. */
  readonly memoryMb: number
  /** GiB. */
  readonly diskGb: number
}

export const ZERO: ExactAmounts = { vcpuMilli: 0, memoryMb: 0, diskGb: 0 }

export const exactAmounts = (amounts: Amounts): ExactAmounts => ({
  vcpuMilli: Math.round(amounts.vcpu * 1_000),
  memoryMb: amounts.memory_mb,
  diskGb: amounts.disk_gb,
})

export const publicAmounts = (amounts: ExactAmounts): Amounts => ({
  vcpu: amounts.vcpuMilli / 1_000,
  memory_mb: amounts.memoryMb,
  disk_gb: amounts.diskGb,
})

export const plus = (a: ExactAmounts, b: ExactAmounts): ExactAmounts => ({
  vcpuMilli: a.vcpuMilli + b.vcpuMilli,
  memoryMb: a.memoryMb + b.memoryMb,
  diskGb: a.diskGb + b.diskGb,
})

export const minus = (a: ExactAmounts, b: ExactAmounts): ExactAmounts => ({
  vcpuMilli: a.vcpuMilli - b.vcpuMilli,
  memoryMb: a.memoryMb - b.memoryMb,
  diskGb: a.diskGb - b.diskGb,
})

export const fitsIn = (need: ExactAmounts, free: ExactAmounts): boolean =>
  need.vcpuMilli <= free.vcpuMilli && need.memoryMb <= free.memoryMb && need.diskGb <= free.diskGb

/** For a sentence: thousands apart, no more than two decimals. */
export const grouped = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 2 })

export const amountsText = (amounts: Amounts): string =>
  `${amounts.vcpu} vCPU, ${grouped(amounts.memory_mb)} MB of memory and ${grouped(amounts.disk_gb)} GB of disk`
