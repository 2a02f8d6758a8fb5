import type { JsonSchema } from '@skein/base'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkSchema } from '@skein/base/shape'
import { ROUTES } from '../../src/http/routes.ts'
import { SCHEMAS } from '../../src/operations/schemas.ts'

const runs = process.env['SKEIN_DEEP'] ? 2000 : 150

/** Schemas of requests, with local references as Ajv finds them. */
const ajv = new Ajv2020({
  strict: false,
  schemas: [{ $id: 'doc', components: { schemas: SCHEMAS } }],
})

const bodies = ROUTES.flatMap((route) =>
  route.body && 'json' in route.body ? [[route.id, route.body.json] as const] : [],
)

test.each(bodies)('%s: our check and Ajv agree on any value', (_, schema) => {
  const inDoc = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/')) as object
  const validate = ajv.compile(inDoc)
  const likely = fc.record(
    Object.fromEntries(
      keysOf(schema).map((key) => [
        key,
        fc.oneof(
          fc.string(),
          fc.boolean(),
          fc.integer(),
          fc.constantFrom('approve', 'deny', 'a'),
          fc.jsonValue(),
        ),
      ]),
    ),
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(likely, fc.jsonValue()), (value) => {
      const json: unknown = JSON.parse(JSON.stringify(value))
      const problems = checkSchema(json, schema, { field: 'body', named: SCHEMAS })
      expect(problems.length === 0).toBe(validate(json))
    }),
    { numRuns: runs },
  )
})

test('a problem names the field and what it must be', () => {
  const schema = ROUTES.find(({ id }) => id === 'createThread')!.body as { json: JsonSchema }
  const value = { agent: 'a', message: { text: 1 }, budget: { maxTokens: -1 }, extra: true }
  const problems = checkSchema(value, schema.json, { field: 'body', named: SCHEMAS })
  expect(problems).toEqual([
    { field: 'body.message.text', message: 'must be string' },
    { field: 'body.budget.maxTokens', message: 'must be at least 0' },
    { field: 'body.extra', message: 'is not a known field' },
  ])
})

function keysOf(schema: object): string[] {
  const found = JSON.stringify(schema, (_, value: unknown) => value).matchAll(/"(\w+)":\{/g)
  const own = [...found].map(([, key]) => key!)
  const named = /schemas\/(\w+)/.exec(JSON.stringify(schema))?.[1]
  const known: Readonly<Record<string, JsonSchema>> = SCHEMAS
  return named ? [...own, ...keysOf(known[named]!)] : [...new Set(own)]
}
