/**
 * Structured output at every vendor: twelve shapes of schemas, each sent as strict or with a warning that
 * names the place, and data that comes back as the schema describes it.
 */
import { join } from 'node:path'
import {
  llm,
  NoRetry,
  parsedObjectMiddleware,
  partials,
  type LLMInstance,
  type LLMOptions,
  type ParsedStreamEvent,
} from '@skein/ai'
import { fallback, rateLimit, RateLimiter, route } from '@skein/ai/routing'
import { openai } from '@skein/ai/openai'
import { says, vendorServer, type VendorServer } from '@skein/ai/testing'
import { isPlainObject, type JsonSchema } from '@skein/base'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { format } from 'prettier'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { withoutNulls } from '../../src/wires/strict-nulls.ts'
import { isStrictSchema, strictProblems } from '../../src/wires/strict-check.ts'
import { toStrict } from '../../src/wires/strict-schema.ts'
import { vendors, type VendorUnderTest } from '../testing/vendors.ts'
import { runs } from './arbitrary-message.ts'
import { processorMs } from '../../../../conformance/support/processor-time.ts'

const str = { type: 'string' }
const num = { type: 'number' }
const object = (properties: object, ...required: string[]): JsonSchema => ({
  type: 'object',
  properties,
  required,
})

interface Shape {
  readonly schema: JsonSchema
  /** Data that the schema describes. */
  readonly data: readonly unknown[]
  /** Where strict mode cannot express the schema, if it cannot. */
  readonly notStrict?: string
}

const shapes: Record<string, Shape> = {
  nested: {
    schema: object(
      { a: object({ b: { type: 'array', items: object({ c: num }, 'c') } }, 'b') },
      'a',
    ),
    data: [{ a: { b: [{ c: 1 }, { c: 2 }] } }],
  },
  optional: {
    schema: object({ a: str, b: num, c: object({ d: str }), e: { enum: ['x', 'y'] } }, 'a'),
    data: [{ a: 'a' }, { a: 'a', b: 1, c: {}, e: 'x' }, { a: '', c: { d: 'd' } }],
  },
  union: {
    schema: object(
      {
        u: {
          oneOf: [
            object({ kind: { const: 'a' }, x: num }, 'kind'),
            object({ kind: { const: 'b' }, x: { type: ['number', 'null'] } }, 'kind', 'x'),
            str,
          ],
        },
      },
      'u',
    ),
    data: [
      { u: 's' },
      { u: { kind: 'a' } },
      { u: { kind: 'a', x: 1 } },
      { u: { kind: 'b', x: null } },
    ],
  },
  'enum root': { schema: { enum: ['red', 'green'] }, data: ['red'] },
  'array root': {
    schema: { type: 'array', items: object({ a: num }) },
    data: [[], [{ a: 1 }, {}]],
  },
  recursive: {
    schema: object(
      { value: num, next: { $ref: '#' }, tree: { $ref: '#/$defs/tree' } },
      'value',
    ) && {
      ...object({ value: num, next: { $ref: '#' }, tree: { $ref: '#/$defs/tree' } }, 'value'),
      $defs: { tree: object({ left: { $ref: '#/$defs/tree' }, name: str }, 'name') },
    },
    data: [
      { value: 1 },
      { value: 1, next: { value: 2, tree: { name: 'a', left: { name: 'b' } } } },
    ],
  },
  record: {
    schema: object({ r: { type: 'object', additionalProperties: num } }, 'r'),
    data: [{ r: { any: 1 } }],
    notStrict: '/structure/properties/r/additionalProperties',
  },
  tuple: {
    schema: object({ t: { type: 'array', items: [str, num], additionalItems: false } }, 't'),
    data: [{ t: ['a', 1] }],
    notStrict: '/structure/properties/t/additionalItems',
  },
  'nullable optional': {
    schema: object({ n: { type: ['string', 'null'] }, m: { anyOf: [num, { type: 'null' }] } }),
    data: [
      { n: null, m: null },
      { n: 'a', m: 1 },
    ],
  },
  defaults: {
    schema: object({ d: { type: 'string', default: 'x', examples: ['y'] } }),
    data: [{}, { d: 'z' }],
  },
  formats: {
    schema: object(
      {
        at: { type: 'string', format: 'date-time' },
        uri: { type: 'string', format: 'uri', minLength: 1 },
      },
      'at',
    ),
    data: [{ at: '2026-01-01T00:00:00Z' }],
  },
  empty: { schema: object({}), data: [{}] },
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
const draft7 = new Ajv({ strict: false, validateFormats: false })

/** What a vendor in strict mode answers: the data with null for every property that is absent. */
function strictAnswer(schema: JsonSchema, data: unknown, root: JsonSchema = schema): unknown {
  const { $ref, anyOf, properties, items } = schema
  if (typeof $ref === 'string') {
    const parts = $ref.split('/').slice(1)
    const target = parts.reduce<unknown>((part, name) => (part as JsonSchema)[name], root)
    return strictAnswer(target as JsonSchema, data, root)
  }
  if (Array.isArray(anyOf)) {
    const answers = (anyOf as JsonSchema[]).map((part) => ({
      part,
      answer: strictAnswer(part, data, root),
    }))
    const fitting = answers.find(({ part, answer }) => {
      const { $defs, definitions } = root
      // References to the root need the whole schema around the branch.
      return ajv.validate(
        {
          $id: `s${id++}`,
          $defs: { ...($defs as object), root: { ...root, $defs: undefined } },
          definitions,
          ...rebased(part),
        },
        answer,
      )
    })
    return fitting?.answer
  }
  if (isPlainObject(properties) && isPlainObject(data)) {
    return Object.fromEntries(
      Object.entries(properties).map(([name, part]) => [
        name,
        Object.hasOwn(data, name) ? strictAnswer(part as JsonSchema, data[name], root) : null,
      ]),
    )
  }
  if (isPlainObject(items) && Array.isArray(data))
    return data.map((item) => strictAnswer(items, item, root))
  return data
}

let id = 0
function rebased(part: JsonSchema): JsonSchema {
  return JSON.parse(
    JSON.stringify(part).replaceAll('"$ref":"#"', '"$ref":"#/$defs/root"'),
  ) as JsonSchema
}

/** The JSON of a format as it was sent, and whether it is strict. */
function sent(server: VendorServer): { schema?: JsonSchema; strict?: boolean; type?: string } {
  const body = server.requests.at(-1)!.body as Record<string, never>
  const format = (body['response_format'] ?? body['text']?.['format'] ?? {}) as Record<
    string,
    never
  >
  return format['json_schema'] ?? format
}

function client<Data>(
  { model, prefix }: VendorUnderTest,
  server: VendorServer,
  options: Omit<LLMOptions<Data>, 'model'>,
): LLMInstance {
  return llm({
    model,
    config: {
      fetch: server.fetch,
      baseUrl: `http://vendor.test${prefix}`,
      apiKey: 'sk-test',
      retryStrategy: new NoRetry(),
    },
    ...options,
  })
}

const own = /anthropic|bedrock|google|ollama|vertex/
const jsonMode = /deepseek/
const strictVendors = vendors.filter(({ name }) => !own.test(name) && !jsonMode.test(name))

describe.each(Object.entries(shapes))('%s', (_, { schema, data, notStrict }) => {
  test.each(strictVendors)(
    '$name: strict or a warning with a path, and the data comes back',
    async (vendor) => {
      for (const wanted of data) {
        const server = vendorServer((request) => {
          const written = request.structure!
          const isWrapped =
            isPlainObject(written['properties']) &&
            'value' in written['properties'] &&
            !('next' in written['properties'])
          const answer = strictAnswer(
            written,
            isWrapped && !isPlainObject(wanted) ? { value: wanted } : wanted,
          )
          return says(JSON.stringify(notStrict ? wanted : answer))
        })
        const stream = client(vendor, server, { structure: schema }).stream('x')
        let last: unknown
        for await (const partial of partials(stream)) last = partial
        const turn = await stream.turn
        const format = sent(server)
        if (notStrict) {
          expect(format.strict).toBeUndefined()
          expect(turn.warnings).toContainEqual(
            expect.objectContaining({ code: 'schema_not_strict', pointer: notStrict }),
          )
        } else {
          expect(format.strict).toBe(true)
          expect(strictProblems(format.schema!)).toEqual([])
          expect(turn.warnings.filter(({ code }) => code === 'schema_not_strict')).toEqual([])
          for (const { pointer } of turn.warnings) expect(pointer).toMatch(/^\/structure\//)
        }
        expect(turn.data).toEqual(wanted)
        expect(last).toEqual(wanted)
        expect(draft7.validate(schema, turn.data)).toBe(true)
      }
    },
  )

  test.each(vendors)('$name: whole answers are the same data', async (vendor) => {
    for (const wanted of data) {
      const isObject = isPlainObject(wanted)
      const server = vendorServer((request) => {
        const isWrapped =
          !isObject && 'value' in ((request.structure?.['properties'] ?? {}) as object)
        return says(
          JSON.stringify(
            isWrapped || (jsonMode.test(vendor.name) && !isObject) ? { value: wanted } : wanted,
          ),
        )
      })
      const turn = await client(vendor, server, { structure: schema }).generate('x')
      expect(turn.data).toEqual(wanted)
      if (jsonMode.test(vendor.name))
        expect(turn.warnings).toMatchObject([
          { code: 'structure_not_enforced', pointer: '/structure' },
        ])
    }
  })
})

describe('every vendor × every shape', () => {
  /** How the schema was sent: the place in the body, and the schema there. */
  function place(server: VendorServer): { form: string; schema?: JsonSchema } {
    interface Format {
      readonly strict?: boolean
      readonly schema: JsonSchema
    }
    const { response_format, text, output_config, generationConfig, format, outputConfig } =
      server.requests.at(-1)!.body as unknown as {
        readonly response_format?: { readonly json_schema?: Format; readonly schema?: JsonSchema }
        readonly text?: { readonly format?: Format }
        readonly output_config?: { readonly format?: Format }
        readonly generationConfig?: { readonly responseJsonSchema?: JsonSchema }
        readonly format?: JsonSchema
        readonly outputConfig?: {
          readonly textFormat?: {
            readonly structure: { readonly jsonSchema: { readonly schema: string } }
          }
        }
      }
    const converse = outputConfig?.textFormat?.structure.jsonSchema.schema
    if (converse !== undefined)
      return { form: 'native', schema: JSON.parse(converse) as JsonSchema }
    if (response_format?.schema) return { form: 'native', schema: response_format.schema }
    const named = response_format?.json_schema ?? text?.format
    if (named) return { form: named.strict ? 'strict' : 'not strict', schema: named.schema }
    const schema = output_config?.format?.schema ?? generationConfig?.responseJsonSchema ?? format
    return schema ? { form: 'native', schema } : { form: 'in the prompt' }
  }

  test('the form, with a note for every place that is not enforced; the data is what was asked for', async () => {
    const notes: string[] = []
    const rows: string[] = []
    const answers: { readonly given: JsonSchema | undefined; readonly answer: unknown }[] = []
    for (const vendor of vendors) {
      const cells: string[] = []
      for (const { schema, data } of Object.values(shapes)) {
        const marks = new Set<number>()
        let form = ''
        for (const wanted of data) {
          const server = vendorServer(() => {
            const { schema: given, form: sentAs } = place(server)
            const members = Object.keys(given?.['properties'] ?? {})
            const isWrapped = !isPlainObject(wanted) && members.join() === 'value'
            const isTold = jsonMode.test(vendor.name) && !isPlainObject(wanted)
            const whole = isWrapped || isTold ? { value: wanted } : wanted
            const answer = sentAs === 'strict' ? strictAnswer(given!, whole) : whole
            answers.push({ given, answer })
            return says(JSON.stringify(answer))
          })
          const stream = client(vendor, server, { structure: schema }).stream('x')
          let last: unknown
          for await (const partial of partials(stream)) last = partial
          const turn = await stream.turn
          form = place(server).form
          expect(turn.data).toEqual(wanted)
          expect(last).toEqual(wanted)
          for (const { code, message, pointer } of turn.warnings) {
            expect(pointer).toMatch(/^\/structure/)
            if (message.includes('closed objects')) continue // that is what asking for a structure means
            const note = `\`${pointer}\`: ${message} (\`${code}\`)`
            if (!notes.includes(note)) notes.push(note)
            marks.add(notes.indexOf(note) + 1)
          }
          // Whatever is not guaranteed has a warning with a path.
          if (form === 'not strict' || form === 'in the prompt')
            expect(marks.size).toBeGreaterThan(0)
          if (form === 'in the prompt')
            expect(JSON.stringify(server.requests.at(-1)!.body)).toContain(
              'matches this JSON Schema',
            )
        }
        const list = [...marks].toSorted((a, b) => a - b)
        cells.push(list.length > 0 ? `${form} (${list.join(', ')})` : form)
      }
      rows.push(`| ${vendor.name} | ${cells.join(' | ')} |`)
    }
    // What was answered fits the schema that was sent, not only the one that was given.
    for (const { given = true, answer } of answers) {
      const isTuple = JSON.stringify(given).includes('"prefixItems"')
      const checker = isTuple ? ajv : draft7
      expect([given, answer, checker.validate(given, answer)]).toEqual([given, answer, true])
    }
    const page = [
      '---',
      'title: Structured output',
      '---',
      '',
      '# Structured output: vendors and shapes of schemas',
      '',
      'How to ask for data is in [Data instead of prose](guides/answers-as-data.md); this page is what each vendor',
      'guarantees. Written by `packages/ai/test/wires/structure.test.ts`, which sends twelve shapes of schemas to every',
      'vendor and checks that `turn.data` and the partials are the data that the schema describes.',
      '',
      '- **strict**: the vendor guarantees the schema. Optional properties were asked for as null, which is',
      '  left out of the data again.',
      "- **native**: the schema is given to the vendor's own structured output.",
      '- **not strict**, **in the prompt**: the vendor cannot be given this schema. It is sent without a',
      '  guarantee, or told to the model in the system prompt; `validate` and `repair` then help.',
      '- The numbers are the warnings of the turn, listed below the table.',
      '',
      `| vendor | ${Object.keys(shapes).join(' | ')} |`,
      `| --- | ${Object.keys(shapes)
        .map(() => '---')
        .join(' | ')} |`,
      ...rows,
      '',
      ...notes.map((note, index) => `${index + 1}. ${note}`),
      '',
    ].join('\n')
    const path = join(import.meta.dirname, '../../../../docs/structured-output.md')
    await expect(await format(page, { parser: 'markdown' })).toMatchFileSnapshot(path)
  })
})

describe('Google', () => {
  const google = vendors.find(({ name }) => name === 'google')!
  const sentTo = async (structure: JsonSchema) => {
    const server = vendorServer([says('{}')])
    const { warnings } = await client(google, server, { structure }).generate('x')
    const { generationConfig } = server.requests[0]!.body as never as {
      generationConfig: { responseJsonSchema: JsonSchema }
    }
    return { schema: generationConfig.responseJsonSchema, warnings }
  }

  test('is given what it documents: $defs, prefixItems, enum, a reference alone', async () => {
    const { schema, warnings } = await sentTo({
      ...object({
        pair: { type: 'array', items: [str, num], additionalItems: false },
        kind: { const: 'a' },
        part: { $ref: '#/definitions/part', description: 'd' },
        plain: { $ref: '#/definitions/part' },
      }),
      definitions: { part: str },
    })
    expect(schema).toEqual({
      ...object({
        pair: { type: 'array', prefixItems: [str, num], items: false },
        kind: { enum: ['a'] },
        part: { description: 'd', anyOf: [{ $ref: '#/$defs/part' }] },
        plain: { $ref: '#/$defs/part' },
      }),
      $defs: { part: str },
    })
    expect(warnings).toEqual([])
  })

  test.each<[string, JsonSchema, string]>([
    ['pattern', object({ a: { type: 'string', pattern: 'x' } }), '/properties/a/pattern'],
    [
      'uniqueItems',
      object({ a: { type: 'array', uniqueItems: true } }),
      '/properties/a/uniqueItems',
    ],
    ['allOf', object({ a: { allOf: [str] } }), '/properties/a/allOf'],
    ['a required member that is the whole again', object({ a: { $ref: '#' } }, 'a'), '/required'],
  ])('%s is not enforced, and a warning says so', async (_, structure, pointer) => {
    expect((await sentTo(structure)).warnings).toMatchObject([
      { code: 'schema_not_enforced', pointer: `/structure${pointer}` },
    ])
  })
})

test('Anthropic: a schema of the params, or none at all, changes no prompt', async () => {
  const anthropic = vendors[0]!
  const record = object({ r: { type: 'object', additionalProperties: num } }, 'r')
  const format = { type: 'json_schema', schema: object({}) }
  const server = vendorServer([says('{"r":{}}'), says('{"r":{}}')])
  const own = client(anthropic, server, {
    structure: record,
    params: { output_config: { format } },
    system: 'Be brief.',
  })
  expect((await own.generate('x')).warnings).toEqual([])
  expect(server.requests[0]!.body).toMatchObject({ system: 'Be brief.', output_config: { format } })
  await client(anthropic, server, { structure: record, system: 'Be brief.' }).generate('x')
  expect((server.requests[1]!.body as { system: string }).system).toMatch(
    /^Be brief\.\n\nAnswer with/,
  )
  expect(server.requests[1]!.body).not.toHaveProperty('output_config')
})

test('ordinary schemas of Zod are strict', async () => {
  const Person = z.object({
    name: z.string(),
    age: z.number().int().optional(),
    pet: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('cat'), lives: z.number().optional() }),
      z.object({ kind: z.literal('dog') }),
    ]),
    when: z.iso.datetime().nullish(),
  })
  const answer = { name: 'Ann', age: null, pet: { kind: 'cat', lives: null }, when: null }
  const server = vendorServer([says(JSON.stringify(answer))])
  const turn = await client(vendors[1]!, server, { structure: Person, validate: true }).generate(
    'x',
  )
  expect(sent(server).strict).toBe(true)
  expect(turn.data).toEqual({ name: 'Ann', pet: { kind: 'cat' }, when: null })
  // The message keeps what the vendor sent.
  expect(turn.response.text).toBe(JSON.stringify(answer))
})

test.each(['chat', 'responses'] as const)(
  '%s: `parsed` of the middleware leaves out the nulls of absent properties, as `turn.data` does',
  async (api) => {
    const answer = { name: 'Ann', age: null, tags: [{ label: 'a', note: null }], when: null }
    const structure = object(
      {
        name: str,
        age: num,
        tags: { type: 'array', items: object({ label: str, note: str }, 'label') },
        when: { type: ['string', 'null'] },
      },
      'name',
    )
    const vendor = { name: 'openai', model: openai('gpt-5', { api }), prefix: '/v1' } as const
    const stream = client(vendor, vendorServer([says(JSON.stringify(answer))]), {
      structure,
      middleware: [parsedObjectMiddleware()],
    }).stream('x')
    let last: unknown
    for await (const event of stream)
      if (event.type === 'object_delta') last = (event as ParsedStreamEvent).delta.parsed
    const expected = { name: 'Ann', tags: [{ label: 'a' }], when: null }
    expect(last).toEqual(expected)
    expect((await stream.turn).data).toEqual(expected)
  },
)

test.each([
  ['fallback', fallback([openai('gpt-5')])],
  ['route', route([{ model: openai('gpt-5') }])],
  ['rateLimit', rateLimit(openai('gpt-5'), { limiter: new RateLimiter({ requests: 9 }) })],
])('%s reads the data as its member does', async (_, model) => {
  const server = vendorServer([says('{"a":null}')])
  const vendor = { name: 'combined', model, prefix: '/v1' } as const
  const turn = await client(vendor, server, { structure: object({ a: str }) }).generate('x')
  expect(turn.data).toEqual({})
})

describe('limits that strict mode does not know', () => {
  test.each([
    ['minLength', { type: 'string', minLength: 2 }],
    ['format', { type: 'string', format: 'uri' }],
    ['pattern', { type: 'string', pattern: '^(?!a)b' }],
    ['uniqueItems', { type: 'array', items: str, uniqueItems: true }],
  ])('%s is left out, with a warning at its place; the rest is strict', (keyword, part) => {
    const { schema, problems, dropped } = toStrict(object({ a: part }, 'a'))
    expect(problems).toEqual([])
    expect(dropped).toMatchObject([{ pointer: `/properties/a/${keyword}` }])
    expect(isStrictSchema(schema)).toBe(true)
  })
})

describe('what strict mode cannot express', () => {
  test.each<[string, JsonSchema, string]>([
    ['any value', object({ a: {} }, 'a'), '/properties/a'],
    ['true', object({ a: true }, 'a'), '/properties/a'],
    ['any object', object({ a: { type: 'object' } }, 'a'), '/properties/a'],
    [
      'an explicitly open object',
      { ...object({}), additionalProperties: true },
      '/additionalProperties',
    ],
    ['any items', object({ a: { type: 'array' } }, 'a'), '/properties/a'],
    [
      'an intersection',
      object({ a: { allOf: [str, { const: 'a' }] } }, 'a'),
      '/properties/a/allOf',
    ],
    [
      'oneOf that may overlap',
      object({ a: { oneOf: [num, { type: 'integer' }] } }, 'a'),
      '/properties/a/oneOf',
    ],
    ['a negation', object({ a: { ...str, not: { const: 'a' } } }, 'a'), '/properties/a/not'],
    [
      'a pointer into a property',
      object({ a: str, b: { $ref: '#/properties/a' } }, 'a', 'b'),
      '/properties/b/$ref',
    ],
    ['a required name without a schema', object({}, 'a'), '/required'],
    [
      'more than ten levels',
      Array.from({ length: 12 }).reduce<JsonSchema>(
        (inner) => object({ a: inner }, 'a'),
        object({}),
      ),
      '',
    ],
  ])('%s', (_, schema, pointer) => {
    const { problems } = toStrict(schema)
    expect(problems.length).toBeGreaterThan(0)
    if (pointer) expect(problems[0]!.pointer).toBe(pointer)
  })
})

describe('toStrict', () => {
  const leaf = fc.constantFrom<JsonSchema>(
    str,
    num,
    { type: 'boolean' },
    { enum: ['a', 'b'] },
    { const: 'k' },
    { type: ['string', 'null'] },
    { anyOf: [num, { type: 'null' }] },
    { type: 'null' },
    { $ref: '#/$defs/node' },
  )
  const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
    schema: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      leaf,
      fc.record({ type: fc.constant('array'), items: tie('schema') }),
      fc
        .record({
          properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'), { maxKeys: 3 }),
          isRequired: fc.func(fc.boolean()),
        })
        .map(({ properties, isRequired }) =>
          object(properties, ...Object.keys(properties).filter((name) => isRequired(name))),
        ),
      fc.tuple(tie('schema'), tie('schema')).map(([one, other]) => ({
        anyOf: [
          object({ kind: { const: 1 }, one }, 'kind'),
          object({ kind: { const: 2 }, other }, 'kind'),
        ],
      })),
    ),
  }))
  const $defs = { node: object({ next: { $ref: '#/$defs/node' }, name: str }, 'name') }

  /** Data that a schema of the arbitrary above describes. */
  function dataOf(part: JsonSchema, random: () => number, depth = 0): unknown {
    const { type, enum: values, anyOf, properties, items, required, $ref } = part
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
    if ($ref) return dataOf($defs.node, random, depth + 1)
    if ('const' in part) return part['const']
    if (Array.isArray(values)) return pick(values)
    if (Array.isArray(anyOf)) return dataOf(pick(anyOf as JsonSchema[]), random, depth + 1)
    if (isPlainObject(properties)) {
      const entries = Object.entries(properties).filter(
        ([name]) => (required as string[]).includes(name) || (depth < 6 && random() < 0.5),
      )
      return Object.fromEntries(
        entries.map(([name, inner]) => [name, dataOf(inner as JsonSchema, random, depth + 1)]),
      )
    }
    if (isPlainObject(items))
      return Array.from({ length: depth < 6 ? Math.floor(random() * 3) : 0 }, () =>
        dataOf(items, random, depth + 1),
      )
    const kind = Array.isArray(type) ? pick(type as string[]) : type
    return kind === 'string' ? 's' : kind === 'number' ? 1 : kind === 'boolean' ? true : null
  }

  /** Data has no null that could mean both: one that the schema accepts, and an absent property. */
  test('the strict schema takes the data with nulls, and withoutNulls brings the data back', () => {
    fc.assert(
      fc.property(
        schema,
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        (part, stream) => {
          const random = (): number => (stream.next().value as number | undefined) ?? 0
          const root = { ...object({ root: part }, 'root'), $defs }
          const strict = toStrict(root)
          expect(strict.problems).toEqual([])
          expect(strictProblems(strict.schema)).toEqual([])
          const data = { root: dataOf(part, random) }
          const answer = filled(root, data)
          expect(ajv.validate(strict.schema, answer)).toBe(true)
          const expected = filledNullable(root, data)
          expect(withoutNulls(root, answer)).toEqual(expected)
          expect(withoutNulls(root, answer, true)).toEqual(expected)
          expect(ajv.validate(root, expected)).toBe(true)
        },
      ),
      runs,
    )
  })

  const filled = (root: JsonSchema, data: unknown): unknown => fill(root, data, () => true)
  /** A property that is absent, but may be null, is null in an answer, and stays so. */
  const filledNullable = (root: JsonSchema, data: unknown): unknown =>
    fill(root, data, (part) => ajv.validate({ ...part, $defs }, null))

  function fill(part: JsonSchema, data: unknown, isNull: (part: JsonSchema) => boolean): unknown {
    const { anyOf, properties, items, $ref } = part
    if ($ref) return fill($defs.node, data, isNull)
    if (Array.isArray(anyOf)) {
      const branch = (anyOf as JsonSchema[]).find(
        (one) =>
          ajv.validate({ ...one, $defs }, data) &&
          (!isPlainObject(data) ||
            (one['properties'] as { kind?: JsonSchema } | undefined)?.kind?.['const'] ===
              data['kind']),
      )
      return branch ? fill(branch, data, isNull) : data
    }
    if (isPlainObject(properties) && isPlainObject(data))
      return Object.fromEntries(
        Object.entries(properties).flatMap(([name, inner]) => {
          if (Object.hasOwn(data, name))
            return [[name, fill(inner as JsonSchema, data[name], isNull)]]
          return isNull(inner as JsonSchema) ? [[name, null]] : []
        }),
      )
    if (isPlainObject(items) && Array.isArray(data))
      return data.map((item) => fill(items, item, isNull))
    return data
  }

  test('a branch is known by a constant whose members are in another order', () => {
    const place = { const: { x: 1, y: 2 } }
    const root = { anyOf: [object({ at: str, n: num }, 'at'), object({ at: place, n: num }, 'at')] }
    const data = { at: { y: 2, x: 1 }, n: null }
    expect(withoutNulls(root, data)).toEqual({ at: { x: 1, y: 2 } })
    expect(withoutNulls(root, { ...data, at: { y: 2, x: 3 } })).toEqual({
      ...data,
      at: { y: 2, x: 3 },
    })
  })

  test('unions in unions without a mark cost little', () => {
    const tree = {
      anyOf: [
        object({ a: { $ref: '#' }, b: str }),
        object({ a: { $ref: '#' }, c: str }),
        { type: 'null' },
      ],
    }
    let data: unknown = { a: 1 }
    for (let i = 0; i < 60; i++) data = { a: data, b: null }
    const start = processorMs()
    withoutNulls(tree, data)
    expect(processorMs() - start).toBeLessThan(2000)
  })

  test('nulls deeper than the stack are left alone', () => {
    let data: unknown = null
    for (let i = 0; i < 20_000; i++) data = { next: data }
    expect(() => withoutNulls(object({ next: { $ref: '#' } }), data)).not.toThrow()
  })
})

describe('our server refuses what the API refuses', () => {
  const open = object({ a: str }, 'a')
  const closed = { ...open, additionalProperties: false }
  const ask = async (params: object, api: 'chat' | 'responses'): Promise<unknown> => {
    const vendor = { name: 'openai', model: openai('gpt-5', { api }), prefix: '/v1' } as const
    // The server half alone: the checks of transcripts know some of these rules too.
    const server = vendorServer([says('{"a":"x"}')], { isStrict: false })
    return client(vendor, server, { params: params as Record<string, unknown> })
      .generate('x')
      .then(
        () => 'answered',
        (error: unknown) => error,
      )
  }

  test.each<[string, JsonSchema, RegExp]>([
    ['an open object', open, /the root: "additionalProperties" is required/],
    [
      'an open object inside',
      { ...object({ in: open }, 'in'), additionalProperties: false },
      /\/properties\/in:/,
    ],
    ['an optional property', { ...closed, required: [] }, /Missing: "a"/],
    ['a root union', { anyOf: [closed] }, /The root must be an object/],
    ['a keyword', { ...closed, allOf: [] }, /\/allOf: The keyword "allOf" is not supported/],
    [
      'text beside a reference',
      { ...closed, properties: { a: { $ref: '#', description: 'd' } } },
      /\/properties\/a\/\$ref/,
    ],
  ])('%s under strict', async (_, schema, message) => {
    const json_schema = { name: 'answer', strict: true, schema }
    const inChat = { response_format: { type: 'json_schema', json_schema } }
    const inResponses = { text: { format: { type: 'json_schema', ...json_schema } } }
    const tool = { name: 'f', description: '', parameters: schema, strict: true }
    for (const asking of [
      ask(inChat, 'chat'),
      ask(inResponses, 'responses'),
      ask({ tools: [{ type: 'function', function: tool }] }, 'chat'),
      ask({ tools: [{ type: 'function', ...tool }] }, 'responses'),
    ])
      expect(await asking).toMatchObject({
        code: 'INVALID_REQUEST',
        statusCode: 400,
        message: expect.stringMatching(message),
      })
  })

  test('a format without a name', async () => {
    const json_schema = { schema: closed }
    expect(
      await ask({ response_format: { type: 'json_schema', json_schema } }, 'chat'),
    ).toMatchObject({
      message: expect.stringContaining('response_format.json_schema.name'),
    })
  })

  test('not what is closed, nor an open object without strict', async () => {
    for (const json_schema of [
      { name: 'a', strict: true, schema: closed },
      { name: 'a', schema: open },
    ])
      expect(await ask({ response_format: { type: 'json_schema', json_schema } }, 'chat')).toBe(
        'answered',
      )
  })
})
