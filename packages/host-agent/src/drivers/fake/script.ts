/**
 * What a fake runtime is told to do, in the sandbox's own environment variable SANDGLASS_FAKE_SCRIPT as JSON, so that a test can script each
 * sandbox through the public API. Only the fake driver reads it.
 */
import { closed, parserOf } from '@sandglass/contract'
import Type from 'typebox'
import type { LaunchSpec } from '../contract.ts'

const milliseconds = Type.Integer({ minimum: 0, maximum: 600_000 })
const FakeScriptSchema = closed({
  /** Before the runtime starts. */
  launch_delay_ms: Type.Optional(milliseconds),
  /** The launch fails with this text. */
  launch_fails: Type.Optional(Type.String()),
  /** The runtime starts, but no guest ever dials. */
  guest_silent: Type.Optional(Type.Boolean()),
  /** The runtime dies this long after it started. */
  exit_after_ms: Type.Optional(milliseconds),
  /** Setting the limits fails with this text. */
  limit_fails: Type.Optional(Type.String()),
})
export type FakeScript = {
  launch_delay_ms?: number
  launch_fails?: string
  guest_silent?: boolean
  exit_after_ms?: number
  limit_fails?: string
}

const parser = parserOf(FakeScriptSchema)

export const FAKE_SCRIPT_VARIABLE = 'SANDGLASS_FAKE_SCRIPT'

/** @throws CodedError when the script is not one: the start fails */
export function fakeScriptOf(spec: LaunchSpec): FakeScript {
  const text = spec.env[FAKE_SCRIPT_VARIABLE]
  return text === undefined ? {} : parser.parse(JSON.parse(text))
}
