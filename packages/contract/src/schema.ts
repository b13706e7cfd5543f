/**
 * Parsing at the edge: one compiled check per schema, a typed value or a CodedError that names each wrong field.
 *
 * A schema is compiled when it is first used: most processes use few of those that they load, and a command line starts anew each time.
 */
import Type, { type Static, type TEnum, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { CodedError, type ErrorCode, type FieldError } from './errors.ts'
import { wordsOf } from './forms.ts'

const MAX_FIELD_ERRORS = 16

export type Parser<T> = {
  /** @throws CodedError `invalid_request` (or the given code) naming each wrong field */
  parse(value: unknown): T
  check(value: unknown): value is T
}

export function parserOf<S extends TSchema>(schema: S, code: ErrorCode = 'invalid_request'): Parser<Static<S>> {
  let once: Validator | undefined
  const checker = () => {
    once ??= Compile(schema)
    return once
  }
  return {
    check: (value): value is Static<S> => checker().Check(value),
    parse(value) {
      const compiled = checker()
      if (compiled.Check(value)) return value as Static<S>
      const errors: FieldError[] = []
      const [, found] = compiled.Errors(value)
      for (const error of found) {
        if (errors.length >= MAX_FIELD_ERRORS) break
        // A closed object reports an unknown field twice: at the field, where `false` stands for its schema, and at the object.
        if (error.keyword === 'additionalProperties') continue
        const message = error.keyword === 'boolean' ? 'is not a known field' : (formOf(error) ?? error.message)
        errors.push({ path: error.instancePath === '' ? '/' : error.instancePath, message })
      }
      const first = errors[0]
      throw new CodedError(code, first === undefined ? undefined : `${first.path} ${first.message}.`, { errors })
    },
  }
}

function formOf({ keyword, params }: { readonly keyword: string; readonly params: object }): string | undefined {
  return keyword === 'pattern' && 'pattern' in params ? wordsOf(params.pattern) : undefined
}

/** An object schema that refuses fields it does not name. */
export function closed<P extends Type.TProperties>(properties: P, options: Type.TObjectOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false })
}

/** One of a closed set of words. */
export function oneOf<const Words extends string[]>(words: readonly [...Words], options: { description?: string } = {}): TEnum<Words> {
  return Type.Enum<Words>(words, options)
}

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])
