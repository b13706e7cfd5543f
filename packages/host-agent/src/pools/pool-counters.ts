/** What one pool has done since the agent started. */
export class PoolCounters {
  /** Claims that got a member at once. */
  hits = 0
  /** Claims that waited for one that was booting. */
  waits = 0
  /** Claims that started cold. */
  misses = 0
  boots = 0
  bootFailures = 0
  bootSeconds = 0
}
