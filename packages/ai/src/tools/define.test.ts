import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { llm, tool, ToolArgumentError, type Tool, type ToolContext } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import { calls, says, scripted } from '@skein/ai/testing'

const context = { signal: new AbortController().signal, toolCallId: 'c', toolName: 'weather' }
const schemas = {
  zod: z.object({ city: z.string() }),
  valibot: toStandardJsonSchema(v.object({ city: v.string() })),
  arktype: type({ city: 'string' }),
}

describe.each(Object.entries(schemas))('with %s', (_name, parameters) => {
  const weather = tool({
    name: 'weather',
    description: 'The weather in a city.',
    parameters,
    run: ({ city }) => `sunny in ${city}`,
  })

  test('UPP-002 the schema library only describes and checks; the tool is a plain UPP tool', async () => {
    expect(weather.parameters).toMatchObject({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    })
    expect(await weather.run({ city: 'Bern' }, context)).toBe('sunny in Bern')
  })

  test('wrong arguments never reach the function, and the error names them', async () => {
    const error: unknown = await weather.run({ city: 7 }, context).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(ToolArgumentError)
    expect(error).toMatchObject({ code: 'TOOL_ARGUMENTS_INVALID' })
    expect(String(error)).toMatch(/"weather".*city/)
  })
})

test.each([[{}], [{ city: 7 }], [{ town: 'Bern', city: null }]])(
  'UPP-003 UPP-117 raw JSON Schema describes and checks nothing: %j reaches run and approval',
  async (params) => {
    const seen: unknown[] = []
    const weather = tool({
      name: 'weather',
      description: 'The weather in a city.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      },
      approval: (args) => (seen.push(args), true),
      run: (args) => (seen.push(args), 'ok'),
    })
    const model = scripted([calls('weather', params), says('Done.')])
    const turn = await llm({ model, tools: [weather] }).generate('Weather?')
    expect(seen).toEqual([params, params])
    expect(turn.toolExecutions).toMatchObject([{ arguments: params, result: 'ok', isError: false }])
  },
)

test('UPP-002 a tool that is an instance of a class keeps its methods, whatever describes its parameters', async () => {
  class Weather {
    readonly name = 'weather'
    readonly description = 'The weather in a city.'
    readonly parameters: never
    constructor(parameters: unknown) {
      this.parameters = parameters as never
    }
    run({ city }: { city: string }): string {
      return this.say(city)
    }
    say(city: string): string {
      return `sunny in ${city}`
    }
  }
  for (const parameters of [schemas.zod, { type: 'object' }]) {
    const model = scripted([calls('weather', { city: 'Bern' }), says('Done.')])
    const turn = await llm({ model, tools: [new Weather(parameters)] }).generate('Weather?')
    expect(turn.toolExecutions).toMatchObject([{ result: 'sunny in Bern', isError: false }])
    expect(model.requests[0]?.tools[0]?.parameters).toMatchObject({ type: 'object' })
  }
})

test('UPP-002 approval and run get what the schema makes of the arguments', async () => {
  const seen: unknown[] = []
  const parameters = z.object({ n: z.string().transform(Number), unit: z.string().default('km') })
  const far = tool({
    name: 'far',
    description: '',
    parameters,
    approval: (args) => (seen.push(args), true),
    run: (args) => (seen.push(args), 'ok'),
  })
  const model = scripted([calls('far', { n: '7' }), says('Done.')])
  await llm({ model, tools: [far] }).generate('How far?')
  const made = { n: 7, unit: 'km' }
  expect(seen).toEqual([made, made])
})

test('UPP-119 the model is told what is wrong with its arguments and may try again', async () => {
  const ran: string[] = []
  const weather = tool({
    name: 'weather',
    description: 'The weather in a city.',
    parameters: schemas.zod,
    run: ({ city }) => ran.push(city),
  })
  const model = scripted([
    calls('weather', { city: 7 }),
    calls('weather', { city: 'Bern' }),
    says('Done.'),
  ])

  const turn = await llm({ model, tools: [weather] }).generate('Weather?')

  expect(ran).toEqual(['Bern'])
  expect(turn.toolExecutions.map((execution) => execution.isError)).toEqual([true, false])
  expect(turn.toolExecutions[0]?.result).toMatch(/city/)
})

test('approval sees checked arguments; a call it cannot read is not approved', async () => {
  const seen: unknown[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.coerce.number() }),
    approval: ({ amount }) => {
      seen.push(amount)
      return amount < 10
    },
    run: ({ amount }) => amount,
  })
  const model = scripted([
    [calls('pay', { amount: '5' }), calls('pay', { amount: 50 }), calls('pay', { amount: 'x' })],
    says('Done.'),
  ])

  const turn = await llm({ model, tools: [pay] }).generate('Pay.')

  expect(seen).toEqual([5, 50])
  expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([false, true, true])
  expect(turn.toolExecutions[0]?.result).toBe(5)
})

test('types: arguments are inferred from the schema, and the result is a Tool', () => {
  const add = tool({
    name: 'add',
    description: 'Adds.',
    parameters: z.object({ a: z.number(), b: z.number() }),
    run: (args, { signal }) => {
      expectTypeOf(args).toEqualTypeOf<{ a: number; b: number }>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      // @ts-expect-error: there is no such argument
      void args.c
      return args.a + args.b
    },
  })
  expect(add.name).toBe('add')
  expectTypeOf(add).toExtend<Tool>()
  expectTypeOf<Awaited<ReturnType<typeof add.run>>>().toEqualTypeOf<number>()
})

describe('with raw JSON Schema', () => {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  } as const

  test('the schema is sent as it is, and the arguments arrive unchecked', async () => {
    const weather = tool({
      name: 'weather',
      description: '',
      risk: 'read_only',
      parameters,
      approval: (args) => args['city'] !== 'Rome',
      run: (args) => {
        expectTypeOf(args).toEqualTypeOf<JsonObject>()
        return args
      },
    })
    expect(weather).toMatchObject({ parameters, risk: 'read_only' })
    expectTypeOf(weather).toExtend<Tool>()
    expect(await weather.run({ city: 7 }, context)).toEqual({ city: 7 })
    expect(await weather.approval?.({ city: 'Rome' }, context)).toBe(false)
  })

  test('types: a context with more fields is declared at the parameter', () => {
    interface WithState extends ToolContext {
      readonly state: { readonly threadId: string }
    }
    const where = tool({
      name: 'where',
      description: '',
      parameters: z.object({}),
      run: (_args, { state }: WithState) => state.threadId,
    })
    expect(where.name).toBe('where')
    expectTypeOf(where).toExtend<Tool>()
    expectTypeOf(where.run).parameter(1).toEqualTypeOf<WithState>()
    // @ts-expect-error: a schema that cannot describe itself is no parameters
    const undescribed = (): unknown => tool({ ...where, parameters: v.object({}) })
    void undescribed
  })
})

test('nonsense is refused where the tool is defined, all problems at once', () => {
  const define = (definition: unknown): unknown => tool(definition as never)
  expect(() => define(undefined)).toThrow(
    expect.objectContaining({ code: 'TOOL_DEFINITION_INVALID' }),
  )
  expect(() => define({ name: 'x', parameters: 'city', risk: 'high', run: 1 })).toThrow(
    'The tool "x" cannot be defined: description is not a string; run is not a function; risk is not one of read_only, write_low_risk, write_high_risk; parameters: Expected a schema but got a string.',
  )
  const fine = { name: 'x', description: '', run: () => 1 }
  expect(() => define({ ...fine, parameters: { city: z.string() } })).toThrow(
    '"city" holds a schema',
  )
  expect(() => define({ ...fine, parameters: { type: 'string' } })).toThrow('type "string"')
  expect(() => define({ ...fine, parameters: {}, timeoutMs: -1 })).toThrow('timeoutMs')
})

test('UPP-112 UPP-120 everything that a definition has is in the tool', async () => {
  const seen: unknown[] = []
  const definition = {
    name: 'x',
    description: 'd',
    metadata: { vendor: { strict: true } },
    sequential: true,
    dependsOn: ['y'],
    risk: 'write_low_risk' as const,
    timeoutMs: 5,
    toModel: (result: unknown) => result,
  }
  const made = tool({
    ...definition,
    parameters: schemas.zod,
    run: (args, given) => void seen.push(['run', args, given]),
    approval: (args, given) => {
      seen.push(['approval', args, given])
      return true
    },
  })
  expect(made).toMatchObject(definition)
  await made.approval?.({ city: 'Rome', more: 1 }, context)
  await made.run({ city: 'Rome', more: 1 }, context)
  const args = { city: 'Rome' }
  expect(seen).toEqual([
    ['approval', args, context],
    ['run', args, context],
  ])
  expect((seen[0] as unknown[])[2]).toBe(context)
})

test('UPP-119 issues count, whatever else a schema answers', async () => {
  const issues = [{ message: 'no' }]
  const standard = {
    version: 1,
    vendor: 'own',
    jsonSchema: { input: () => ({}), output: () => ({}) },
  }
  const parameters = { '~standard': { ...standard, validate: () => ({ value: {}, issues }) } }
  const made = tool({ name: 'x', description: '', parameters: parameters as never, run: () => 1 })
  await expect(made.run({}, context)).rejects.toMatchObject({
    code: 'TOOL_ARGUMENTS_INVALID',
    issues,
  })
})

test.each(['array', 'string', 'number', 'boolean', 'null'])(
  'UPP-112 parameters of the type %s are refused',
  (named) => {
    const define = (): unknown =>
      tool({ name: 'x', description: '', parameters: { type: named }, run: () => 1 })
    expect(define).toThrow(`type "${named}"`)
  },
)
