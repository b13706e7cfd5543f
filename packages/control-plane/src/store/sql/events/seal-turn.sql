-- guard: seal.turn. One sealer at a time, until its transaction ends; a crash gives the turn back. A statement of its own, so that the next one's snapshot holds all that the
-- sealer before gave.
SELECT pg_advisory_xact_lock(7263550) AS turn
