/**
 * The limits that are part of the contract, with their unit in the name. A bound that is private to one role stands in that role's file.
 *
 * Limits that the guest agent enforces too stand in its own source as well; those that `vectors/guest-protocol/limits.json` names are held to the
 * same numbers. Others of the guest are wider than these: more may come together there than one request holds.
 *
 * A limit that a schema states is refused with `invalid_request` and the field. One that is checked behind the schema is refused with
 * `limit_exceeded`, `body_too_large` or the code named beside it, and that error carries the limit's name and value. To add one: add it here, use
 * it where input is parsed, and add a test that reaches it.
 */

const KiB = 1024
const MiB = 1024 * KiB

export const LIMITS = {
  // Public API
  /** Request line and headers, of the API and of gateways: a path of `pathBytes`, each byte percent-encoded, and the rest. */
  requestHeadBytes: 32 * KiB,
  apiBodyBytes: 1 * MiB,
  apiJsonDepth: 16,
  pageItems: 200,
  pageItemsDefault: 50,
  idempotencyKeyCharacters: 255,
  idempotencyKeyLifeSeconds: 24 * 3600,
  idempotencyWaitMs: 5_000,
  preferWaitSeconds: 120,
  operationWaiters: 4_096,
  /** Worked on at once by one control plane, and of one tenant; the rest of the request pool's connections stays free for gateways. */
  apiRequestsRunning: 14,
  apiRequestsRunningPerTenant: 10,
  apiRequestsQueued: 4_096,
  apiRequestsQueuedPerTenant: 1_024,
  apiQueueWaitMs: 10_000,
  apiRateKeyRequests: 5_000,
  apiRateTenantRequests: 10_000,
  apiRateWindowSeconds: 10,
  eventRetentionSeconds: 7 * 24 * 3600,
  eventsKeptPerTenant: 1_000_000,
  eventStreamsPerKey: 16,
  eventHeartbeatMs: 10_000,
  /** A reader of the change feed that takes nothing for so long is cut; it resumes where it was. */
  eventStallMs: 30_000,

  // Sandbox
  nameCharacters: 63,
  metadataEntries: 32,
  metadataKeyCharacters: 64,
  metadataValueCharacters: 512,
  envEntries: 128,
  envKeyCharacters: 128,
  envValueBytes: 32 * KiB,
  /** All of `env` as JSON text; a start order that carries it, escaped once more, stays below `hostWatchLineBytes`. */
  envJsonBytes: 120 * KiB,
  vcpuMin: 0.1,
  vcpuMax: 64,
  memoryMbMin: 128,
  memoryMbMax: 1_048_576,
  diskGbMin: 1,
  diskGbMax: 1_024,
  ttlSecondsMin: 10,
  ttlSecondsMax: 30 * 24 * 3600,
  ttlSecondsDefault: 3_600,
  /** Above `leaseMs`: a session that nobody has asked about for so long has ended, so what is still used is never taken for idle. */
  idleTimeoutSecondsMin: 60,
  /** A stopped sandbox is deleted by itself so long after its stop, or at its own deadline if that is later. */
  stoppedLifeSeconds: 30 * 24 * 3600,
  startAttempts: 3,
  /** Restarts by policy in a row, each with `startAttempts` of its own; the next loss is `failed`. */
  restartsInARow: 8,
  /** Pause before the first restart of a row; it doubles with each. */
  restartBackoffMs: 1_000,
  /** One that was ready for so long begins a new row. */
  restartSteadySeconds: 600,
  startTimeoutMs: 30_000,
  sandboxPids: 1_024,

  // Quota of a new tenant
  quotaRunningSandboxesDefault: 1_000,
  quotaVcpuDefault: 4_000,
  quotaMemoryMbDefault: 4 * 1024 * 1024,
  quotaDiskGbDefault: 64 * 1024,
  /** Stopped and failed ones that are not deleted; past it no sandbox is created. */
  quotaKeptSandboxesDefault: 10_000,

  // Placement
  /** One that has waited for room so long keeps a host: what comes free there is not given to those behind it. */
  placementKeepAfterMs: 30_000,
  /** Waiting longer than this counts in the order among tenants, so that a burst is ordered by shares alone. */
  placementAgeingAfterMs: 60_000,
  /** So much of it outweighs the whole fleet as a share. */
  placementAgeingMs: 600_000,

  // Exec and processes
  argvEntries: 4_096,
  argvBytes: 128 * KiB,
  shellBytes: 128 * KiB,
  cwdBytes: 4_096,
  userCharacters: 64,
  processKeyCharacters: 128,
  processTimeoutMs: 7 * 24 * 3600 * 1000,
  execJsonOutputBytes: 8 * MiB,
  execJsonStdinBytes: 512 * KiB,
  outputWindowBytes: 1 * MiB,
  exitDrainMs: 100,
  processesRunning: 4_096,
  processesRetained: 1_000,
  processOutputRetainedMs: 600_000,
  processOutputRetainedBytes: 64 * MiB,
  terminalColumns: 1_000,
  terminalRows: 1_000,

  // Files
  pathBytes: 4_096,
  pathComponentBytes: 255,
  listItems: 1_000,
  archiveEntries: 1_000_000,
  archiveBytes: 64 * 1024 * MiB,
  fileWatchers: 64,
  fileWatchDirectoriesPerWatch: 8_192,

  // Gateway WebSocket
  frameBytes: 64 * KiB,
  controlFrameBytes: 256 * KiB,
  outputCreditBytes: 1 * MiB,
  stdinCreditBytes: 256 * KiB,
  sessionsPerSandbox: 256,
  sessionsPerKey: 2_048,
  sessionTicketMs: 30_000,
  sessionTicketsPerKey: 64,
  sessionHeartbeatMs: 10_000,
  /** A client that answers nothing may hold back a terminal for so long while others look at it. */
  terminalHoldMs: 9_000,
  sessionStartTimeoutMs: 10_000,
  accessCacheMs: 2_000,
  revocationMs: 5_000,
  feedHeartbeatMs: 1_000,
  feedSilenceMs: 3_000,
  gatewayConnections: 16_384,
  execJsonBufferedBytes: 256 * MiB,
  guestListBytes: 16 * MiB,
  guestAnswerMs: 30_000,
  uploadIdleMs: 120_000,
  uploadStallMs: 60_000,
  downloadStallMs: 60_000,
  guestWorkMs: 1_800_000,
  sessionSignals: 64,
  gatewayDrainMs: 8_000,

  // Guest protocol
  guestPreambleBytes: 1_024,
  guestFrameBytes: 64 * KiB,
  guestJsonBytes: 1 * MiB,
  /** A terminal’s input that stays open is receipted at least once in so many bytes; well below `stdinCreditBytes`, which waits for receipts. */
  stdinReceiptBytes: 16 * KiB,
  guestHeaderBytes: 32 * KiB,
  guestStreams: 1_024,
  guestConnectTimeoutMs: 10_000,

  // Host API
  hostReportItems: 1_000,
  hostBodyBytes: 4 * MiB,
  hostWatchLineBytes: 256 * KiB,
  renewPeriodMs: 5_000,
  ticketTerms: 6,

  // Leases of hosts and their end; `test/lease-timing.test.ts` holds them to what makes a fence safe
  /** A host that renewed nothing for so long is lost, and no route to it is valid. */
  leaseMs: 30_000,
  /** So long before the end of its lease, counted from the sending of the last renewal that was answered, a host freezes what it runs. */
  leaseMarginMs: 5_000,
  /** So long the freeze may take. */
  leaseStopMs: 5_000,
  /** Published: so long after the end of an unrenewed lease the control plane waits before it takes the lease away and starts elsewhere. */
  fenceGraceMs: 10_000,
  /** How often each control plane looks at the leases. */
  fencePollMs: 1_000,
  /** A control plane that did not look for longer than this, for whatever reason, counts anew: hosts may have been kept from renewing. */
  fenceGapMs: 10_000,
  /** Two clocks that run differ by no more than this many millionths. */
  clockDriftPpm: 1_000,

  // Operating hosts
  hostLabels: 32,
  hostLabelKeyCharacters: 63,
  hostLabelValueCharacters: 63,
  drainSecondsMin: 10,
  drainSecondsMax: 7 * 24 * 3600,
  drainSecondsDefault: 600,
  /** So long before a drain's deadline what still runs on the host is ended: the time that its proofs may take. */
  drainEndSeconds: 30,

  // Identities of machines
  joinTokenSecondsMin: 60,
  joinTokenSecondsMax: 7 * 24 * 3600,
  joinTokenSecondsDefault: 3_600,
  certificateLifeMs: 24 * 3_600_000,
  /** How far the clock of who looks at a certificate may be from the clock of who issued it, each way: a stepped clock costs no lease. */
  certificateToleranceMs: 24 * 3_600_000,
  /** How long a control plane goes by what it has read of an identity, should the wake-up of a change be lost. */
  identityCacheMs: 2_000,
  /** Audit rows about refused peers, of each control plane and minute; what is more is counted in the next one. */
  refusalRowsPerMinute: 60,
  tlsHandshakeMs: 5_000,

  // Host agent
  hostSandboxes: 1_000,
  hostStartsInFlight: 8,
  hostEndsInFlight: 16,
  hostStartMs: 25_000,
  hostCommandMs: 15_000,
  hostProbeMs: 30_000,
  hostDestroyMs: 10_000,
  hostFreeDiskMbFloor: 2_048,
  hostFreeMemoryMbFloor: 512,
  hostCensusPeriodMs: 30_000,
  hostExitPollMs: 2_000,
  hostControlRequestMs: 10_000,
  /** A renewal that hangs is given up and sent anew: an outage that is over must not cost the lease. */
  hostRenewalMs: 5_000,
  hostWatchSilenceMs: 30_000,
  hostBackoffMaxMs: 5_000,
  hostReportRepeatMs: 2_000,
  runtimeMemoryOverheadMb: 64,
  hostPools: 32,
  poolMembers: 256,
  poolBootsInFlight: 2,

  // Host agent: the channel of one guest, and what gateways send to it
  guestConnections: 4,
  guestDialBurst: 32,
  guestDialEveryMs: 1_000,
  guestPreambleMs: 2_000,
  guestRequestMs: 10_000,
  guestStreamWindowBytes: 1 * MiB,
  guestConnectionWindowBytes: 320 * MiB,
  guestChannelWaitMs: 2_000,
  dataPlaneSessions: 64,
  dataPlaneStreams: 4_096,
  dataPlaneStreamsPerSandbox: 768,
  dataPlanePathBytes: 16 * KiB,
  dataPlaneHeaderValueBytes: 4 * KiB,
} as const

export type LimitName = keyof typeof LIMITS
