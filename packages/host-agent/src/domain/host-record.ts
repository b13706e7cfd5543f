/**
 * What a host knows of itself across restarts.
 *
 * `floor` is the lowest epoch that it may ever hold: having asked for a new epoch it never resumes the old one (register.floor), also when the
 * answer was lost and the agent died in between.
 */
export type HostRecord = {
  readonly format: 1
  readonly host_id: string
  readonly epoch: number
  readonly floor: number
  /** Of the kernel under which `epoch` was held. */
  readonly boot_id: string
  /** Newest lease sequence heard; the only clock that tickets know. */
  readonly last_seq: number
}

export function firstHostRecord(hostId: string, bootId: string): HostRecord {
  return { format: 1, host_id: hostId, epoch: 0, floor: 0, boot_id: bootId, last_seq: 0 }
}

/** Before a register that asks for a new epoch: the floor rises on disk first. A repeat under the same boot resumes what this boot holds. */
export function recordAsking(record: HostRecord, bootId: string): HostRecord {
  if (record.epoch > 0 && record.boot_id === bootId && record.floor <= record.epoch) return record
  return { ...record, boot_id: bootId, floor: Math.max(record.floor, record.epoch + 1) }
}

/** Nothing of it was given up: what runs here may go on. */
export const holdsEpoch = (record: HostRecord): boolean => record.epoch > 0 && record.floor <= record.epoch

/**
 * After a renewal or a registration was refused. Whatever is held is void only if the epoch that SQL holds by now is told and is beyond it: that is a
 * stable fact. Anything else may be the word of a database that was restored from long ago: it ends nothing, and the deadline of the lease decides.
 * @param told the epoch that the refusal names @returns the same record when nothing is lost by it
 */
export function recordRefused(record: HostRecord, told: number | undefined): HostRecord {
  return told !== undefined && told > Math.max(record.epoch, record.floor - 1) ? { ...record, floor: told + 1 } : record
}

/** guard: register.floor. Undefined when the answer would resume an epoch that this host has given up. */
export function recordRegistered(record: HostRecord, answer: { epoch: number; seq: number }): HostRecord | undefined {
  if (answer.epoch < record.floor || answer.epoch < record.epoch) return undefined
  return { ...record, epoch: answer.epoch, floor: Math.max(record.floor, answer.epoch), last_seq: Math.max(record.last_seq, answer.seq) }
}

export function recordSeq(record: HostRecord, seq: number): HostRecord {
  return seq > record.last_seq ? { ...record, last_seq: seq } : record
}
