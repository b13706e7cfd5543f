SELECT c.relname AS name,
  ARRAY(
    SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
      || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
  ) AS columns,
  ARRAY(
    SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE conrelid = c.oid AND contype <> 'n' ORDER BY contype, conname
  ) AS constraints,
  ARRAY(
    SELECT 'index ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE (UNIQUE )?INDEX (\S+) ON \S+ ', '\2 \1')
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
    WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
    ORDER BY x.relname
  ) AS indexes,
  ARRAY(
    SELECT 'trigger ' || regexp_replace(pg_get_triggerdef(oid), '^CREATE TRIGGER ', '') FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal ORDER BY tgname
  ) AS triggers
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'sandglass' AND c.relkind = 'r'
ORDER BY c.relname
