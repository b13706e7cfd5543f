/** A JSON file with a schema. */
import type { Parser } from '@sandglass/contract'
import { readWhole, writeAtomically } from './atomic-file.ts'

/** Undefined when there is no such file. @throws CodedError or SyntaxError when it is not what the schema says */
export async function readJson<T>(path: string, parser: Parser<T>): Promise<T | undefined> {
  const text = await readWhole(path)
  return text === undefined ? undefined : parser.parse(JSON.parse(text))
}

export function writeJson(path: string, value: unknown): Promise<void> {
  return writeAtomically(path, `${JSON.stringify(value)}\n`)
}
