import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../test/wires/arbitrary-message.ts'
import { findIssues, jsonSchema } from './json-schema.ts'

const names = fc.constantFrom('a', 'b', 'c', 'ab')
const scalar = fc.oneof(
  fc.constantFrom('', 'a', 'ab', 'abc', '😀', '😀b', 'B1'),
  fc.integer({ min: -4, max: 9 }),
  fc.constantFrom(0.5, 1.5, 2.25),
  fc.boolean(),
  fc.constant(null),
)
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(names, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}))
const size = fc.integer({ min: 0, max: 3 })
const pattern = fc.constantFrom('^a', 'b$', '^.$', '[A-Z]\\d', '\\p{L}')
const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'object', 'array')

/** Random schemas of every keyword that the checker knows. */
const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => {
  const inner = tie('schema')
  const list = fc.array(inner, { minLength: 1, maxLength: 3 })
  const map = fc.dictionary(names, inner, { maxKeys: 3 })
  const some = (keywords: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<object> =>
    fc.record(keywords, { requiredKeys: [] })
  return {
    schema: fc.oneof(
      { depthSize: 'small', maxDepth: 4 },
      fc.boolean(),
      some({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })) }),
      some({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }), const: value }),
      some({ minLength: size, maxLength: size, pattern }),
      some({ minimum: size, maximum: size, exclusiveMinimum: size, exclusiveMaximum: size }),
      some({ multipleOf: fc.constantFrom(1, 2, 0.5) }),
      some({
        type: fc.constant('object'),
        properties: map,
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: inner,
        patternProperties: fc.dictionary(pattern, inner, { maxKeys: 2 }),
        propertyNames: inner,
        minProperties: size,
        maxProperties: size,
        dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), {
          maxKeys: 2,
        }),
        dependentSchemas: map,
      }),
      some({
        type: fc.constant('array'),
        items: inner,
        prefixItems: list,
        minItems: size,
        maxItems: size,
        uniqueItems: fc.boolean(),
      }),
      // Not beside `prefixItems`: Ajv 8 then accepts an empty list, which has nothing that `contains` asks for.
      some({
        items: inner,
        contains: inner,
        minContains: size,
        maxContains: size,
      }),
      some({ anyOf: list, oneOf: list, allOf: list, not: inner }),
      some(Object.fromEntries(['if', 'then', 'else'].map((keyword) => [keyword, inner]))),
      fc.constantFrom({ $ref: '#/$defs/leaf' }, { $ref: '#/$defs/tree' }),
    ),
  }
})

const $defs = {
  leaf: { type: 'string', minLength: 1 },
  tree: { type: 'object', properties: { a: { $ref: '#/$defs/tree' }, b: { type: 'number' } } },
}

test('has the verdict of Ajv for random schemas and values', { timeout: 60_000 }, () => {
  const verdicts = { true: 0, false: 0 }
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
  const verdict = (validate: (value: unknown) => unknown, one: unknown): boolean | undefined => {
    try {
      return validate(one) === true
    } catch (error) {
      // Ajv 8 writes broken code for some schemas, such as `items: false` beside `not: true`.
      if (error instanceof ReferenceError) return undefined
      throw error
    }
  }
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 1, maxLength: 8 }), (part, values) => {
      const root = { $defs, allOf: [part] }
      const validate = ajv.compile(root)
      for (const one of values) {
        const expected = verdict(validate, one)
        if (expected === undefined) continue
        verdicts[`${expected}`]++
        expect(findIssues(root, one).length === 0, JSON.stringify({ part, one })).toBe(expected)
      }
    }),
    { ...runs, numRuns: 400 },
  )
  // Both verdicts must be frequent, or the comparison says nothing.
  expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(200)
})

test('reads lists of schemas in items as draft 7 does', () => {
  const tuple = { type: 'array', items: [{ type: 'string' }], additionalItems: { type: 'number' } }
  expect(findIssues(tuple, ['a', 1, 2])).toEqual([])
  expect(findIssues(tuple, [1, 'a'])).toMatchObject([{ pointer: '/0' }, { pointer: '/1' }])
})

describe('issues', () => {
  const person = {
    type: 'object',
    properties: { name: { type: 'string' }, 'a/b~c': { type: 'array', items: { minimum: 3 } } },
    required: ['name'],
    additionalProperties: false,
  }

  test('have a JSON pointer and a message', () => {
    expect(findIssues(person, { 'a/b~c': [3, 1], extra: true })).toEqual([
      { pointer: '/name', message: 'is missing' },
      { pointer: '/a~1b~0c/1', message: 'must be at least 3' },
      { pointer: '/extra', message: 'is not a known property' },
    ])
    expect(findIssues(person, null)).toEqual([
      { pointer: '', message: 'must be object, but is null' },
    ])
  })

  test('of a union are those of the nearest branch', () => {
    const union = { anyOf: [{ type: 'string' }, person] }
    expect(findIssues(union, { name: 1 })).toEqual([
      { pointer: '/name', message: 'must be string, but is number' },
    ])
  })

  test('names of Object.prototype are ordinary names', () => {
    expect(findIssues({ required: ['constructor'] }, {})).toHaveLength(1)
    expect(findIssues(person, JSON.parse('{"name":"a","__proto__":1}'))).toMatchObject([
      { pointer: '/__proto__' },
    ])
  })

  test('data that is nested too deeply does not fit, and does not overflow', () => {
    let deep: unknown = 1
    for (let i = 0; i < 50_000; i++) deep = [deep]
    expect(findIssues({ items: { $ref: '#' } }, deep)).toMatchObject([
      { message: 'is nested too deeply' },
    ])
  })
})

describe('jsonSchema', () => {
  test('is a Standard Schema', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number' } } }
    const { validate, jsonSchema: written } = jsonSchema<{ a?: number }>(schema)['~standard']
    expect(await validate({ a: 1 })).toEqual({ value: { a: 1 } })
    expect(await validate({ a: '1' })).toMatchObject({ issues: [{ path: ['a'] }] })
    expect(written.input({ target: 'draft-07' })).toEqual(schema)
  })

  test.each([
    [{ unevaluatedProperties: false }],
    [{ properties: { a: { $dynamicRef: '#x' } } }],
    [{ items: { $ref: 'https://example.com/schema' } }],
    [{ $ref: '#/$defs/absent' }],
    [{ pattern: '(' }],
    [{ patternProperties: { '[': {} } }],
  ])('%j is refused, because it would not be checked', (schema) => {
    expect(() => jsonSchema(schema)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^SCHEMA_/) }),
    )
  })

  test('a property may have the name of a keyword', () => {
    expect(() => jsonSchema({ properties: { $anchor: {} }, const: { $ref: 'x' } })).not.toThrow()
  })
})
