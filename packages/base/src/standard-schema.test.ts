import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isStandardSchema, toJsonSchema } from '@skein/base'

const notConvertible = (hint: string) =>
  expect.objectContaining({ code: 'SCHEMA_NOT_CONVERTIBLE', hint: expect.stringContaining(hint) })
const invalid = (hint: string) =>
  expect.objectContaining({ code: 'SCHEMA_INVALID', hint: expect.stringContaining(hint) })

const schemas = {
  zod: z.object({ city: z.string(), days: z.number().optional() }),
  valibot: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number()) })),
  arktype: type({ city: 'string', 'days?': 'number' }),
}

describe.each(Object.entries(schemas))('%s', (_vendor, schema) => {
  test('is a Standard Schema that describes itself', () => {
    expect(isStandardSchema(schema)).toBe(true)
    expect(toJsonSchema(schema)).toMatchObject({
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'number' } },
      required: ['city'],
    })
  })

  test('writes draft-07 unless told otherwise', () => {
    const draft = (uri: string) =>
      expect.objectContaining({ $schema: expect.stringContaining(uri) })
    expect(toJsonSchema(schema)).toEqual(draft('draft-07'))
    expect(toJsonSchema(schema, { target: 'draft-2020-12' })).toEqual(draft('2020-12'))
  })
})

test.each(['valibot', 'arktype'] as const)(
  'a target %s refuses is our error with its own as cause',
  (vendor) => {
    expect(() => toJsonSchema(schemas[vendor], { target: 'draft-99' })).toThrow(
      expect.objectContaining({ code: 'SCHEMA_NOT_CONVERTIBLE', cause: expect.any(Error) }),
    )
  },
)

test('what a schema accepts is described, not what it produces', () => {
  expect(toJsonSchema(z.object({ n: z.number().default(1) }))).not.toHaveProperty('required')
})

test('a type that JSON does not have is an error with its cause', () => {
  expect(() => toJsonSchema(z.object({ at: z.date() }))).toThrow(
    expect.objectContaining({ code: 'SCHEMA_NOT_CONVERTIBLE', cause: expect.any(Error) }),
  )
})

test('a schema that only validates is told how to describe itself', () => {
  const plain = v.object({ city: v.string() })
  expect(isStandardSchema(plain)).toBe(true)
  for (const name of ['Zod 4', 'ArkType', 'toStandardJsonSchema', '@valibot/to-json-schema']) {
    expect(() => toJsonSchema(plain)).toThrow(notConvertible(name))
  }
  expect(() => toJsonSchema(plain)).toThrow('valibot')
})

test('JSON Schema passes as it is', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, 'x-mine': 1 }
  expect(toJsonSchema(schema)).toBe(schema)
  expect(toJsonSchema({})).toEqual({})
})

test('a bare shape is not mistaken for JSON Schema', () => {
  expect(() => toJsonSchema({ city: z.string() })).toThrow(invalid('z.object'))
  expect(() => toJsonSchema({ city: z.string() })).toThrow('"city"')
})

test.each([undefined, null, 'string', 1, true, [], () => ({}), new Map(), new Date()])(
  '%o is no schema',
  (value) => {
    expect(() => toJsonSchema(value)).toThrow(invalid('JSON Schema object'))
    expect(isStandardSchema(value)).toBe(false)
  },
)

test.each([{ '~standard': {} }, { '~standard': null }, { '~standard': { validate: 1 } }, {}])(
  '%j cannot validate',
  (value) => expect(isStandardSchema(value)).toBe(false),
)
