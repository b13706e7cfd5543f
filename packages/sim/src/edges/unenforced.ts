/** Whoever runs the simulation: its machines have wardens. */
import type { Warden } from '@sandglass/host-agent/warden/warden'
import { WardenProcess } from './warden-process.ts'

export const unenforced = (_clock: unknown, renewalMs: number): Warden => new WardenProcess({ renewalMs })
