import * as v from 'valibot'
import { z } from 'zod'
import type { JsonValue } from '@skein/base'

/** One field: its schema, and values that a model may send; undefined leaves the field out. */
export type Field<Schema> = readonly [Schema, readonly (JsonValue | undefined)[]]

/** Fields of Zod schemas that make the same of a value each time: defaults, transforms, coercions, unions. */
export const steadyFields: readonly (() => Field<z.ZodType>)[] = [
  () => [z.string().default('none'), ['a', undefined]],
  () => [z.number().transform((n) => n * 100), [5, 0, -1.5, 'five']],
  () => [z.coerce.number(), ['7', 7, true, 'x']],
  () => [z.coerce.boolean().default(true), [undefined, '', 'yes', 0]],
  () => [z.string().trim().toUpperCase(), [' ab ', 'C']],
  () => [z.string().transform((text) => `${text}!`), ['a', 'a!']],
  () => [
    z.union([z.number().transform((n) => n + 1), z.string().transform((s) => s.length)]),
    [1, 'abc', null],
  ],
  () => [z.enum(['low', 'high']).default('high'), [undefined, 'low', 'none']],
  () => [
    z.object({ all: z.boolean().default(true), n: z.number().optional() }).prefault({}),
    [undefined, {}, { all: false, n: 2 }],
  ],
  () => [z.array(z.number().transform((n) => [n])).max(3), [[], [1, 2], [1, 2, 3, 4]]],
  () => [z.string().optional(), [undefined, 'x']],
  () => [z.string().transform((text) => ({ text, length: text.length })), ['word', '']],
  () => [z.preprocess((value) => value ?? 'absent', z.string()), [undefined, null, 'x']],
  () => [z.record(z.string(), z.number().transform(String)), [{ a: 1 }, { a: 'x' }]],
  () => [z.string().transform(async (text) => text.split(',')), ['a,b', '']],
  () => [z.number().catch(3), [1, 'x']],
]

/** Also one whose default is another one each time. */
export const zodFields: typeof steadyFields = [
  ...steadyFields,
  () => [z.string().default(() => `${Math.random()}`), [undefined, 'given']],
]

export const valibotFields: readonly (() => Field<v.GenericSchema | v.GenericSchemaAsync>)[] = [
  () => [v.optional(v.string(), 'none'), [undefined, 'a']],
  () => [
    v.pipe(
      v.number(),
      v.transform((n) => n * 100),
      v.number(),
    ),
    [5, 'x'],
  ],
  () => [v.union([v.number(), v.pipe(v.string(), v.transform(Number), v.number())]), [1, '7']],
  () => [
    v.pipe(
      v.string(),
      v.transform((text) => text.trim()),
    ),
    [' a ', 'B'],
  ],
]

export const arkFields: readonly (readonly [
  definition: unknown,
  values: readonly (JsonValue | undefined)[],
])[] = [
  ['string = "none"', [undefined, 'a']],
  [
    ['number', '=>', (n: number) => n * 100],
    [5, 'x'],
  ],
  ['string.numeric.parse', ['7', 'x']],
  ['string.trim', [' a ']],
]
