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

/** After a renewal, or a registration that was to resume it, was refused: whatever is held is void, and so is every epoch up to it. */
export function recordEpochLost(record: HostRecord): HostRecord {
  return { ...record, floor: Math.max(record.floor, record.epoch + 1) }
}

/** guard: register.floor. Undefined when the answer would resume an epoch that this host has given up. */
export function recordRegistered(record: HostRecord, answer: { epoch: number; seq: number }): HostRecord | undefined {
  if (answer.epoch < record.floor || answer.epoch < record.epoch) return undefined
  return { ...record, epoch: answer.epoch, floor: Math.max(record.floor, answer.epoch), last_seq: Math.max(record.last_seq, answer.seq) }
}

export function recordSeq(record: HostRecord, seq: number): HostRecord {
  return seq > record.last_seq ? { ...record, last_seq: seq } : record
}
