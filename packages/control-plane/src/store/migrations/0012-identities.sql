-- Machines that are no part of the control plane: how they come in, and who they are.
--
-- A token lets one machine in, once; whose name and key used it is kept, so that a repeat whose answer was lost gets the same answer.
CREATE TABLE join_tokens (
  id text PRIMARY KEY,
  sha256 text NOT NULL UNIQUE,
  role text NOT NULL CHECK (role IN ('host', 'gateway')),
  labels jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  used_at timestamptz,
  used_by text,
  used_key text,
  CONSTRAINT join_tokens_use_whole CHECK (num_nulls(used_at, used_by, used_key) IN (0, 3))
);
CREATE INDEX join_tokens_newest ON join_tokens (created_at, id);

-- The CA's signature says who a machine is; a row says what has become of that. Without a row nothing has: a control plane whose database was lost lets its
-- machines in again. With one, only certificates of the key that joined last are good, and none of an identity that was revoked.
CREATE TABLE identities (
  role text NOT NULL CHECK (role IN ('host', 'gateway')),
  name text NOT NULL,
  -- SHA-256 of its public key, base64url; null: it was revoked without ever having joined here.
  key_fingerprint text,
  -- Of its token, until it registers as a host.
  labels jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
  joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  renewed_at timestamptz,
  -- Of the certificate that was issued last, for people.
  serial text,
  expires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (role, name),
  CONSTRAINT identities_key CHECK (key_fingerprint IS NOT NULL OR revoked_at IS NOT NULL)
);
