/** How `up` and `down` know the supervisor: by name, and by how it ends. */
export const SUPERVISOR = 'supervisor'

export const SUPERVISOR_EXIT = { failed: 70, alreadyRunning: 75 } as const
