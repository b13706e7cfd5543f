/** The single-machine installation, for the command line: start, stop, status, logs. */
export { HOST_UNIT, type JoinedHost, type JoinOptions, joinHost, runInFront, startDetached, writeUnit } from './joined-host.ts'
export { LOG_LIMITS } from './log-file.ts'
export { type LogLine, type LogQuery, readLogs } from './log-reader.ts'
export { resolveSettings } from './settings.ts'
export { homeFrom, type Started, type StartOptions, startInstallation } from './start.ts'
export { type InstallationStatus, LOG_NAMES, type RoleStatus, readStatus } from './status.ts'
export { type StopOptions, type Stopped, stopInstallation } from './stop.ts'
