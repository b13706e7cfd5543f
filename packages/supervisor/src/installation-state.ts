/** `run/installation.json`: what the supervisor says about itself and its roles, written whole at each change. */
import { readFileSync } from 'node:fs'
import { closed, nullable, oneOf, parserOf } from '@sandglass/contract/schema'
import Type, { type Static } from 'typebox'
import { writeFileAtomic } from './atomic-file.ts'
import { paths } from './installation.ts'

const StateSchema = closed({
  state: oneOf(['starting', 'ready', 'stopping', 'failed'], { description: 'ready: every role was ready once.' }),
  supervisor: closed({ pid: Type.Integer({ minimum: 1 }), started_at: Type.String() }),
  installation: closed({
    id: Type.String(),
    cache: Type.String(),
    code: Type.String(),
    host: Type.String(),
    api_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
    gateway_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  }),
  roles: Type.Array(
    closed({
      name: Type.String(),
      state: oneOf(['starting', 'ready', 'unready', 'waiting', 'stopped']),
      pid: nullable(Type.Integer({ minimum: 1 })),
      url: Type.Optional(nullable(Type.String())),
      restarts: Type.Integer({ minimum: 0 }),
      since: Type.String(),
      last_exit: nullable(Type.String()),
    }),
  ),
  failure: nullable(closed({ code: Type.String(), message: Type.String() })),
})
export type InstallationState = Static<typeof StateSchema>

const parser = parserOf(StateSchema)

export function writeState(home: string, state: InstallationState): void {
  writeFileAtomic(paths.state(home), `${JSON.stringify(state)}\n`, 0o644)
}

/** Undefined when there is none, or one that this version cannot read. */
export function readState(home: string): InstallationState | undefined {
  try {
    return parser.parse(JSON.parse(readFileSync(paths.state(home), 'utf8')))
  } catch {
    return undefined
  }
}
