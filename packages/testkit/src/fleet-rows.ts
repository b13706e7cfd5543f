/**
 * A fleet with a history, as rows: what an installation looks like that has run for months. Made inside the database, so that a million takes minutes.
 *
 * Every row satisfies the constraints, and the sums are exact: what hosts have reserved is what live assignments hold, what tenants use is what their sandboxes
 * ask for. Nothing runs and no host answers; `renewFleet` keeps the leases, as renewals would.
 */
import type pg from 'pg'

export type FleetRows = {
  readonly hosts: number
  /** Ready sandboxes, evenly over hosts and tenants. */
  readonly live: number
  /** Created, run and deleted, over the days before. */
  readonly finished: number
  readonly tenants: number
  readonly template: { readonly name: string; readonly digest: string }
  /** Free on each host beside what is live. */
  readonly free: { readonly vcpu: number; readonly memory_mb: number; readonly disk_gb: number }
}

type Client = Pick<pg.ClientBase, 'query'>

const REGION = 'l1'
const DRIVERS = JSON.stringify([{ name: 'fake', proved: true, version: '1', detail: 'rows', probe_ms: 0 }])

/** What each live sandbox has: vcpu_milli, memory_mb, disk_gb. */
const UNIT = '500, 512, 2'

/** Inserted by one statement, so that more rows take more time and not more memory. */
const STEP = 50_000

/** An SQL expression for an id of the right form: `tag` and the number are its sixteen characters. */
const id = (prefix: string, number: string, tag = ''): string =>
  `'${prefix}${tag}' || translate(lpad((${number})::text, ${16 - tag.length}, '0'), '0123456789', 'abcdefghij')`

export async function insertFleet(client: Client, fleet: FleetRows): Promise<void> {
  const { hosts, live, tenants, template, free } = fleet
  await client.query('SET search_path TO sandglass')
  await client.query(`INSERT INTO tenants (id, name) SELECT ${id('te', 'n')}, 'rows-' || n FROM generate_series(0, ${tenants - 1}) n`)
  await client.query(
    `INSERT INTO quotas (tenant_id, running_sandboxes_limit, vcpu_milli_limit, memory_mb_limit, disk_gb_limit, kept_sandboxes_limit,
       running_sandboxes_used, vcpu_milli_used, memory_mb_used, disk_gb_used)
     SELECT ${id('te', 'n')}, 1e6, 1e12, 1e12, 1e12, 1e6, held, held * 500, held * 512, held * 2
     FROM generate_series(0, ${tenants - 1}) n CROSS JOIN LATERAL (SELECT ${shareOf(live, tenants)} AS held) h`,
  )
  await client.query(
    `INSERT INTO hosts (id, name, region, version, drivers, templates, labels, data_plane_url)
     SELECT ${id('ho', 'n')}, 'rows-' || n, '${REGION}', '0', $1, $2, jsonb_build_object('zone', 'z' || n % 3, 'class', 'rows'), 'http://127.0.0.1:1'
     FROM generate_series(0, ${hosts - 1}) n`,
    [DRIVERS, JSON.stringify([template])],
  )
  await client.query(
    "INSERT INTO host_leases (host_id, epoch, seq, holder, renewed_at) SELECT id, 1, 1, 'rows', clock_timestamp() FROM hosts WHERE name LIKE 'rows-%'",
  )
  await client.query(
    `INSERT INTO host_capacity (host_id, vcpu_milli_capacity, vcpu_milli_reserved, memory_mb_capacity, memory_mb_reserved, disk_gb_capacity, disk_gb_reserved)
     SELECT ${id('ho', 'n')}, held * 500 + ${free.vcpu * 1_000}, held * 500, held * 512 + ${free.memory_mb}, held * 512, held * 2 + ${free.disk_gb}, held * 2
     FROM generate_series(0, ${hosts - 1}) n CROSS JOIN LATERAL (SELECT ${shareOf(live, hosts)} AS held) h`,
  )
  for (let from = 0; from < live; from += STEP) {
    for (const statement of rowsOf(fleet, 'live', from, Math.min(live, from + STEP) - 1)) await client.query(statement)
  }
  await insertFinished(client, fleet, 0)
}

/** More of what is over, behind the first `from` of it. */
export async function insertFinished(client: Client, fleet: FleetRows, from: number): Promise<void> {
  await client.query('SET search_path TO sandglass')
  for (let at = from; at < fleet.finished; at += STEP) {
    for (const statement of rowsOf(fleet, 'finished', at, Math.min(fleet.finished, at + STEP) - 1)) await client.query(statement)
  }
  await client.query('RESET search_path')
  await settle(client)
}

/** As it would be long after: feeds sealed, tables vacuumed. */
async function settle(client: Client): Promise<void> {
  await client.query(
    `INSERT INTO sandglass.event_feeds (tenant_id, head) SELECT tenant_id, max(position) FROM sandglass.events WHERE position IS NOT NULL GROUP BY tenant_id
     ON CONFLICT (tenant_id) DO UPDATE SET head = excluded.head`,
  )
  await client.query('VACUUM ANALYZE')
}

/** Of so many things the one of number n has: the first ones have one more where it does not come out even. */
const shareOf = (things: number, among: number): string => `${Math.floor(things / among)} + (n < ${things % among})::integer`

/** Sandboxes, and what belongs to each: operations, an assignment, a usage interval, an audit row, an event of its end. */
function rowsOf({ hosts, tenants, template }: FleetRows, which: 'live' | 'finished', from: number, to: number): string[] {
  const isLive = which === 'live'
  const sandbox = id(`sb${REGION}`, 'n', isLive ? 'r' : 'f')
  const operation = id('op', 'n', isLive ? 'r' : 'f')
  const tenant = id('te', `n % ${tenants}`)
  const host = id('ho', `n % ${hosts}`)
  const at = isLive ? "clock_timestamp() - interval '1 d' + n * interval '1 s'" : "clock_timestamp() - interval '30 d' + n * interval '2 s'"
  const each = `FROM generate_series(${from}, ${to}) n CROSS JOIN LATERAL (SELECT least(${at}, clock_timestamp() - interval '2 h') AS at) t`
  const ended = isLive ? 'NULL' : "at + interval '1 h'"
  return [
    `INSERT INTO sandboxes (id, tenant_id, region, desired, generation, observed, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver, evidence,
       network_mode, env, metadata, ttl_seconds, host_id, start_attempts, quota_held, operation_id, created_at, ready_at, expires_at, ended_at)
     SELECT ${sandbox}, ${tenant}, '${REGION}', ${isLive ? "'running', 1, 'ready'" : "'deleted', 2, 'terminated'"}, '${template.name}', '${template.digest}', ${UNIT}, 'fake', '{}',
       'none', '{}', jsonb_build_object('team', 't' || n % 50), 2592000, ${host}, 1, ${isLive}, ${operation}, at, at + interval '1 s', at + interval '60 d', ${ended} ${each}`,
    `INSERT INTO operations (id, tenant_id, kind, status, sandbox_id, created_at, ended_at)
     SELECT ${operation}, ${tenant}, 'sandbox.create', 'succeeded', ${sandbox}, at, at + interval '1 s' ${each}`,
    ...(isLive
      ? []
      : [
          `INSERT INTO events (tenant_id, type, sandbox_id, generation, at, position)
           SELECT ${tenant}, 'sandbox.terminated', ${sandbox}, 2, ${ended}, n / ${tenants} + 1 ${each}`,
          `INSERT INTO operations (id, tenant_id, kind, status, sandbox_id, created_at, ended_at)
           SELECT ${id('op', 'n', 'd')}, ${tenant}, 'sandbox.delete', 'succeeded', ${sandbox}, ${ended}, ${ended} ${each}`,
        ]),
    `INSERT INTO assignments (id, kind, tenant_id, sandbox_id, generation, host_id, epoch, vcpu_milli, memory_mb, disk_gb, created_at, released_at, released_by)
     SELECT ${id('as', 'n', isLive ? 'r' : 'f')}, 'sandbox', ${tenant}, ${sandbox}, 1, ${host}, 1, ${UNIT}, at, ${ended}, ${isLive ? 'NULL' : "'ended'"} ${each}`,
    `INSERT INTO usage_intervals (sandbox_id, generation, tenant_id, vcpu_milli, memory_mb, disk_gb, opened_at, closed_at)
     SELECT ${sandbox}, 1, ${tenant}, ${UNIT}, at + interval '1 s', ${ended} ${each}`,
    `INSERT INTO audit_log (tenant_id, actor_type, actor_id, action, subject, detail, at) SELECT ${tenant}, 'key', 'rows', 'sandbox.create', ${sandbox}, '{}', at ${each}`,
  ]
}

/** What renewals of all of its hosts do, which nobody sends. */
export async function renewFleet(client: Client): Promise<void> {
  await client.query("UPDATE sandglass.host_leases SET seq = seq + 1, renewed_at = clock_timestamp() WHERE holder = 'rows'")
}
