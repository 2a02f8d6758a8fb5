import type {
  StandardJSONSchemaV1 as OfficialJsonSchema,
  StandardSchemaV1 as Official,
} from '@standard-schema/spec'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import type {
  InferInput,
  InferOutput,
  StandardJSONSchemaV1,
  StandardSchemaV1,
} from './standard-schema.ts'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function yes<_Fact extends true>(): void {}

const zodSchema = z.object({ n: z.string().transform(Number) })
const valibotSchema = toStandardJsonSchema(v.object({ n: v.string() }))
const arkSchema = type({ n: 'string' })

yes<Equal<InferInput<typeof zodSchema>, { n: string }>>()
yes<Equal<InferOutput<typeof zodSchema>, { n: number }>>()
yes<Equal<InferOutput<typeof valibotSchema>, { n: string }>>()
yes<Equal<InferInput<typeof arkSchema>, { n: string }>>()

// Our copies and the official interfaces take each other's place.
type Pair = StandardSchemaV1<string, number>
declare const official: Official<string, number> & OfficialJsonSchema<string, number>
declare const ours: Pair & StandardJSONSchemaV1<string, number>
official satisfies Pair & StandardJSONSchemaV1<string, number>
ours satisfies Official<string, number> & OfficialJsonSchema<string, number>
yes<Equal<InferOutput<typeof official>, number>>()

// A type parameter bound straight from the schema is inferred within one object literal.
type Schema<T> = StandardSchemaV1<unknown, T> & StandardJSONSchemaV1<unknown, T>
declare function tool<T>(def: { parameters: Schema<T>; run: (args: T) => unknown }): void
tool({ parameters: zodSchema, run: (args) => args.n.toFixed() })
tool({ parameters: valibotSchema, run: (args) => args.n.trim() })
tool({ parameters: arkSchema, run: (args) => args.n.trim() })
// @ts-expect-error -- no such property
tool({ parameters: zodSchema, run: (args) => args.missing })
// @ts-expect-error -- a Valibot schema cannot describe itself without its adapter
tool({ parameters: v.object({ n: v.string() }), run: (args) => args })
