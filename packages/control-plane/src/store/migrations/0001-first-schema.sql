-- The rows of the ownership protocol and of the public API.
--
-- Amounts are integers (thousandths of a vCPU, MiB, GiB) so that sums are exact. Times that decide anything are clock_timestamp() of this
-- database; now() is frozen at the start of a transaction. Events, audit and outbox are appended without a position: serial numbers commit out
-- of order, so whoever needs an order takes it behind the oldest transaction still open.

CREATE TABLE tenants (
  id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The secret is 256 random bits, so a plain SHA-256 of it is enough and can be looked up by.
CREATE TABLE api_keys (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenants,
  name text NOT NULL,
  role text NOT NULL CHECK (role IN ('viewer', 'member', 'owner', 'operator')),
  sha256 text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  actor_type text NOT NULL DEFAULT 'key' CHECK (actor_type IN ('user', 'key', 'host', 'operator', 'system')),
  user_id text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, created_at, id);

-- What a tenant may hold and holds: counted from create until the sandbox neither is wanted running nor has a live assignment.
CREATE TABLE quotas (
  tenant_id text PRIMARY KEY REFERENCES tenants,
  running_sandboxes_limit integer NOT NULL,
  running_sandboxes_used integer NOT NULL DEFAULT 0,
  vcpu_milli_limit bigint NOT NULL,
  vcpu_milli_used bigint NOT NULL DEFAULT 0,
  memory_mb_limit bigint NOT NULL,
  memory_mb_used bigint NOT NULL DEFAULT 0,
  disk_gb_limit bigint NOT NULL,
  disk_gb_used bigint NOT NULL DEFAULT 0,
  CHECK (running_sandboxes_used BETWEEN 0 AND running_sandboxes_limit),
  CHECK (vcpu_milli_used BETWEEN 0 AND vcpu_milli_limit),
  CHECK (memory_mb_used BETWEEN 0 AND memory_mb_limit),
  CHECK (disk_gb_used BETWEEN 0 AND disk_gb_limit)
);

CREATE TABLE templates (
  name text PRIMARY KEY,
  current_digest text NOT NULL
);

CREATE TABLE template_versions (
  id text PRIMARY KEY,
  name text NOT NULL REFERENCES templates,
  digest text NOT NULL,
  size_bytes bigint NOT NULL,
  packages jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (name, digest)
);

CREATE TABLE sandboxes (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenants,
  name text,
  region text NOT NULL,
  desired text NOT NULL CHECK (desired IN ('running', 'stopped', 'deleted')),
  -- Advances on every change of what is wanted and on every placement; whatever speaks for a runtime carries it.
  generation bigint NOT NULL DEFAULT 0 CHECK (generation >= 0),
  observed text NOT NULL CHECK (observed IN ('pending', 'assigned', 'starting', 'ready', 'stopping', 'stopped', 'failed', 'terminating', 'terminated')),
  status_reason text,
  unschedulable_reason text,
  template_name text NOT NULL,
  template_digest text NOT NULL,
  vcpu_milli integer NOT NULL CHECK (vcpu_milli > 0),
  memory_mb integer NOT NULL CHECK (memory_mb > 0),
  disk_gb integer NOT NULL CHECK (disk_gb > 0),
  driver text NOT NULL,
  evidence jsonb,
  network_mode text NOT NULL,
  env jsonb NOT NULL,
  metadata jsonb NOT NULL,
  ttl_seconds integer NOT NULL,
  -- The host of the latest placement; shown only while something may run there.
  host_id text,
  start_attempts integer NOT NULL DEFAULT 0,
  -- No placement before this moment; set after a failed start.
  retry_at timestamptz,
  quota_held boolean NOT NULL,
  start_timings_ms jsonb,
  operation_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ready_at timestamptz,
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  UNIQUE (tenant_id, id)
);
-- A name is free at the tombstone.
CREATE UNIQUE INDEX sandboxes_name ON sandboxes (tenant_id, name) WHERE desired <> 'deleted';
CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant_id, created_at, id);
CREATE INDEX sandboxes_live_by_tenant ON sandboxes (tenant_id, created_at, id) WHERE desired <> 'deleted';
CREATE INDEX sandboxes_pending ON sandboxes (tenant_id, created_at) WHERE observed = 'pending' AND desired = 'running';
CREATE INDEX sandboxes_expiring ON sandboxes (expires_at) WHERE desired <> 'deleted';

CREATE TABLE operations (
  id text PRIMARY KEY,
  tenant_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('sandbox.create', 'sandbox.delete')),
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  sandbox_id text NOT NULL,
  problem jsonb,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id),
  CHECK ((status = 'failed') = (problem IS NOT NULL)),
  CHECK ((status = 'pending') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX operations_one_of_a_kind ON operations (sandbox_id, kind);

CREATE TABLE hosts (
  id text PRIMARY KEY,
  name text NOT NULL,
  region text NOT NULL,
  version text NOT NULL,
  drivers jsonb NOT NULL,
  templates jsonb NOT NULL,
  data_plane_url text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Apart from hosts and host_capacity, so that placement's locks never hold up a renewal.
CREATE TABLE host_leases (
  host_id text PRIMARY KEY REFERENCES hosts,
  epoch bigint NOT NULL CHECK (epoch >= 0),
  seq bigint NOT NULL CHECK (seq >= 0),
  holder text,
  renewed_at timestamptz
);

CREATE TABLE host_capacity (
  host_id text PRIMARY KEY REFERENCES hosts,
  vcpu_milli_capacity bigint NOT NULL,
  vcpu_milli_reserved bigint NOT NULL DEFAULT 0,
  memory_mb_capacity bigint NOT NULL,
  memory_mb_reserved bigint NOT NULL DEFAULT 0,
  disk_gb_capacity bigint NOT NULL,
  disk_gb_reserved bigint NOT NULL DEFAULT 0,
  cordoned boolean NOT NULL DEFAULT false,
  CHECK (vcpu_milli_reserved BETWEEN 0 AND vcpu_milli_capacity),
  CHECK (memory_mb_reserved BETWEEN 0 AND memory_mb_capacity),
  CHECK (disk_gb_reserved BETWEEN 0 AND disk_gb_capacity)
);

CREATE TABLE assignments (
  id text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('sandbox')),
  tenant_id text NOT NULL,
  sandbox_id text NOT NULL,
  generation bigint NOT NULL,
  host_id text NOT NULL REFERENCES hosts,
  epoch bigint NOT NULL,
  vcpu_milli integer NOT NULL,
  memory_mb integer NOT NULL,
  disk_gb integer NOT NULL,
  pool_version bigint,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  released_at timestamptz,
  released_by text CHECK (released_by IN ('ended', 'fence')),
  FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id),
  UNIQUE (sandbox_id, generation),
  CHECK ((released_at IS NULL) = (released_by IS NULL))
);
-- guard: place.one
CREATE UNIQUE INDEX assignments_one_live ON assignments (sandbox_id) WHERE released_at IS NULL;
CREATE INDEX assignments_live_by_host ON assignments (host_id, created_at) WHERE released_at IS NULL;

CREATE TABLE usage_intervals (
  sandbox_id text NOT NULL,
  generation bigint NOT NULL,
  tenant_id text NOT NULL,
  vcpu_milli integer NOT NULL,
  memory_mb integer NOT NULL,
  disk_gb integer NOT NULL,
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  closed_at timestamptz,
  PRIMARY KEY (sandbox_id, generation),
  FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id)
);

-- The key is kept as a digest: a secret that a replay shows again is derived from its text (services/api-key-secret.ts).
CREATE TABLE idempotency_keys (
  tenant_id text NOT NULL,
  route text NOT NULL,
  key_sha256 text NOT NULL,
  body_sha256 text NOT NULL,
  subject_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, route, key_sha256)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Wake-ups that other replicas have not been told of yet.
CREATE TABLE outbox (
  id uuid PRIMARY KEY DEFAULT uuidv7(),
  origin text NOT NULL,
  topic text NOT NULL,
  key text NOT NULL
);

CREATE TABLE events (
  id uuid PRIMARY KEY DEFAULT uuidv7(),
  tenant_id text NOT NULL,
  type text NOT NULL,
  sandbox_id text NOT NULL,
  generation bigint NOT NULL,
  reason text,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX events_by_sandbox ON events (sandbox_id, id);

CREATE TABLE audit_log (
  id uuid PRIMARY KEY DEFAULT uuidv7(),
  tenant_id text,
  actor_type text NOT NULL CHECK (actor_type IN ('user', 'key', 'host', 'operator', 'system')),
  actor_id text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  request_id text,
  detail jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, at);
