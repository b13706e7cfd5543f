/** Hosts as rows, without agents: as many as a test wants, of uneven sizes, all ready for an hour. */
import type { Amounts } from '@sandglass/contract'
import type { Rig } from './harness.ts'
import { TEMPLATE } from './harness.ts'

const FAKE = JSON.stringify([{ name: 'fake', proved: true, version: '1', detail: 'rows', probe_ms: 0 }])

/** @returns their ids */
export async function insertHosts(
  rig: Pick<Rig, 'rows'>,
  sizes: readonly Amounts[],
  labels: (index: number) => Record<string, string> = () => ({}),
): Promise<string[]> {
  const ids = sizes.map((_, index) => `ho${String(index).padStart(16, 'a')}`)
  await rig.rows(
    `INSERT INTO sandglass.hosts (id, name, region, version, drivers, templates, labels, data_plane_url)
     SELECT id, 'host-' || turn, 'l1', '0', $3, $4, labels, '' FROM unnest($1::text[], $2::jsonb[]) WITH ORDINALITY AS host (id, labels, turn)`,
    [ids, ids.map((_, index) => JSON.stringify(labels(index))), FAKE, JSON.stringify([TEMPLATE])],
  )
  await rig.rows(
    `INSERT INTO sandglass.host_leases (host_id, epoch, seq, holder, renewed_at) SELECT id, 1, 1, 'boot', clock_timestamp() + interval '1 h' FROM unnest($1::text[]) AS host (id)`,
    [ids],
  )
  await rig.rows(
    `INSERT INTO sandglass.host_capacity (host_id, vcpu_milli_capacity, memory_mb_capacity, disk_gb_capacity)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])`,
    [ids, sizes.map(({ vcpu }) => vcpu * 1_000), sizes.map(({ memory_mb }) => memory_mb), sizes.map(({ disk_gb }) => disk_gb)],
  )
  return ids
}
