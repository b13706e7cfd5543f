/** The host's own record on disk. */
import { closed, ID_PATTERNS, newHostId, parserOf, type RandomBytes } from '@sandglass/contract'
import Type from 'typebox'
import { firstHostRecord, type HostRecord } from '../domain/host-record.ts'
import { readJson, writeJson } from './json-file.ts'

const position = Type.Integer({ minimum: 0 })
const parser = parserOf(
  closed({
    format: Type.Literal(1),
    host_id: Type.String({ pattern: ID_PATTERNS.host }),
    epoch: position,
    floor: position,
    boot_id: Type.String({ minLength: 8, maxLength: 64 }),
    last_seq: position,
  }),
)

export type HostRecords = {
  /** Makes and keeps a host id on the first start. @throws when the file is damaged: a host that forgot its epoch must not guess one */
  load(bootId: string): Promise<HostRecord>
  write(record: HostRecord): Promise<void>
}

export function hostRecords(path: string, random: RandomBytes): HostRecords {
  return {
    async load(bootId) {
      const found = await readJson(path, parser)
      if (found !== undefined) return found
      const first = firstHostRecord(newHostId(random), bootId)
      await writeJson(path, first)
      return first
    },
    write: (record) => writeJson(path, record),
  }
}
