import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { argumentParserOf, type JsonObject, type RecordedArguments } from '@skein/base'
import { calls, says, scripted } from '@skein/ai/testing'
import { defer, llm, tool, type CallPorts, type Tool, type ToolCall } from '@skein/ai'
import { deriveTool } from './define.ts'
import { settleTools } from './executor.ts'

const made = { cents: 500, all: true }
let transforms = 0
const parameters = z.object({
  cents: z.number().transform((n) => {
    transforms++
    return n * 100
  }),
  all: z.boolean().default(true),
})

interface Options {
  readonly schema?: z.ZodObject
  readonly isDeferred?: boolean
}

function payTool({ schema = parameters, isDeferred = false }: Options = {}) {
  const seen: unknown[] = []
  transforms = 0
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    parameters: schema as typeof parameters,
    approval: (args) => {
      seen.push(['approval', args])
      return isDeferred ? defer({ kind: 'approval', request: args }) : true
    },
    run: (args) => {
      seen.push(['run', args])
      return 'paid'
    },
  })
  return { pay, seen }
}

const context = { signal: new AbortController().signal, toolCallId: 'c', toolName: 'pay' }
const clock = { now: () => 0 }

function runOne(tools: readonly Tool[], args: JsonObject, ports: CallPorts = {}) {
  const call: ToolCall = { toolCallId: 'c', toolName: 'pay', arguments: args }
  const { signal } = new AbortController()
  return settleTools({ calls: [call], tools, clock, signal, open: () => ports })
}

describe('a call of a tool with a schema', () => {
  test('is parsed once; approval, gate, journal, hooks, run and the turn have that value', async () => {
    const { pay, seen } = payTool()
    const hooks: unknown[] = []
    const model = scripted([calls('pay', { cents: 5 }), says('Done.')])
    const turn = await llm({
      model,
      tools: [pay],
      toolStrategy: {
        onBeforeCall: (_tool, args) => void hooks.push(['before', args]),
        onAfterCall: (_tool, args) => void hooks.push(['after', args]),
      },
    }).generate('Pay.')
    expect(seen).toEqual([
      ['approval', made],
      ['run', made],
    ])
    expect(transforms).toBe(1)
    expect(hooks).toEqual([
      ['before', { cents: 5 }],
      ['after', made],
    ])
    expect(turn.toolExecutions).toMatchObject([{ arguments: made, result: 'paid' }])
    expect(model.requests[1]?.messages.find((one) => one.type === 'assistant')).toMatchObject({
      toolCalls: [{ arguments: { cents: 5 } }],
    })
    const journal: unknown[] = []
    await runOne(
      [payTool().pay],
      { cents: 5 },
      {
        gate: { admit: (call) => (journal.push(['gate', call.arguments]), { type: 'allow' }) },
        journal: {
          commit: (effect) =>
            void journal.push([effect.type, effect.call.arguments, effect.parsed]),
        },
      },
    )
    const parsed = { arguments: made, schema: expect.stringMatching(/^[0-9a-f]{64}$/) as string }
    expect(journal).toEqual([
      ['gate', made],
      ['call_start', made, parsed],
      ['call_end', made, parsed],
    ])
  })

  test('is parsed after onBeforeCall, which may replace what the model sent', async () => {
    const { pay, seen } = payTool()
    const model = scripted([calls('pay', { cents: 5 }), says('Done.')])
    const onBeforeCall = () => ({ proceed: true, params: { cents: 6, all: false } })
    await llm({ model, tools: [pay], toolStrategy: { onBeforeCall } }).generate('Pay.')
    expect(seen.at(-1)).toEqual(['run', { cents: 600, all: false }])
  })

  test('a copy that a gate returns is not parsed again', async () => {
    const { pay, seen } = payTool()
    await runOne(
      [pay],
      { cents: 5 },
      {
        gate: { admit: (call) => ({ type: 'allow', arguments: structuredClone(call.arguments) }) },
      },
    )
    expect(seen.at(-1)).toEqual(['run', made])
    expect(transforms).toBe(1)
  })

  test('that does not fit is told to the model with all issues; approval and gate are not asked', async () => {
    const { pay, seen } = payTool()
    const { settled } = await runOne(
      [pay],
      { cents: 'many', all: 'yes' },
      {
        gate: { admit: () => expect.unreachable() },
      },
    )
    expect(seen).toEqual([])
    const [{ outcome }] = settled as [(typeof settled)[0]]
    expect(outcome).toMatchObject({ type: 'error', cause: { code: 'TOOL_ARGUMENTS_INVALID' } })
    expect(outcome.type === 'error' && outcome.message).toMatch(/cents.*all/)
  })

  test('a direct call of run parses, and so does one of approval', async () => {
    const { pay, seen } = payTool()
    await pay.run({ cents: 5 }, context)
    await pay.approval?.({ cents: 6 }, context)
    expect(seen).toEqual([
      ['run', made],
      ['approval', { cents: 600, all: true }],
    ])
    await expect(pay.run({ cents: 'x' }, context)).rejects.toMatchObject({
      code: 'TOOL_ARGUMENTS_INVALID',
    })
  })
})

describe('a call that waited', () => {
  async function waiting() {
    const { pay } = payTool({ isDeferred: true })
    const model = scripted([calls('pay', { cents: 5 }), says('Done.')])
    const turn = await llm({ model, tools: [pay] }).generate('Pay.')
    const [open] = turn.openCalls
    expect(open).toMatchObject({ request: { request: made }, parsed: { arguments: made } })
    return JSON.parse(JSON.stringify(open?.parsed)) as RecordedArguments
  }

  test('runs with the recorded value, and nothing is parsed again', async () => {
    const parsed = await waiting()
    const { pay, seen } = payTool({ isDeferred: true })
    await runOne([pay], { cents: 5 }, { isApproved: true, parsed })
    expect(seen).toEqual([['run', made]])
    expect(transforms).toBe(0)
  })

  test('is asked for again if another definition makes other arguments of it', async () => {
    const parsed = await waiting()
    const schema = z.object({ cents: z.number(), all: z.boolean().default(false) })
    const { pay, seen } = payTool({ isDeferred: true, schema })
    const { settled } = await runOne([pay], { cents: 5 }, { isApproved: true, parsed })
    expect(seen).toEqual([['approval', { cents: 5, all: false }]])
    expect(settled[0]?.outcome.type).toBe('deferred')
  })

  test('runs if another definition makes the same of it', async () => {
    const parsed = await waiting()
    const schema = parameters.describe('Pays an amount.')
    const { pay, seen } = payTool({ isDeferred: true, schema })
    await runOne([pay], { cents: 5 }, { isApproved: true, parsed })
    expect(seen).toEqual([['run', made]])
  })

  test('before parsed arguments were recorded is approved only for what the model sent', async () => {
    const same = payTool({ isDeferred: true })
    await runOne([same.pay], { cents: 5 }, { isApproved: true })
    expect(same.seen).toEqual([['approval', made]])
    const schema = z.object({ cents: z.number() })
    const unchanged = payTool({ isDeferred: true, schema })
    await runOne([unchanged.pay], { cents: 5 }, { isApproved: true })
    expect(unchanged.seen).toEqual([['run', { cents: 5 }]])
  })
})

describe('a wrapper keeps the parse phase', () => {
  const wrappers: Readonly<Record<string, (own: Tool) => Tool>> = {
    'by a spread': (own) => ({ ...own }),
    'with deriveTool': (own) => deriveTool(own, { description: 'Other.' }),
    'that replaces run': (own) => ({
      ...own,
      run: (args: never, given: never) => own.run(args, given),
    }),
    'that replaces run with one parameter': (own) => ({
      ...own,
      run: (args: never) => own.run(args, context as never),
    }),
    'of the four fields': ({ name, description, parameters: schema, run }) =>
      ({ name, description, parameters: schema, run }) as Tool,
    'that describes other parameters': (own) => ({ ...own, parameters: { type: 'object' } }),
  }
  test.each(Object.entries(wrappers))('%s', async (_, wrap) => {
    const { pay, seen } = payTool()
    const gated: unknown[] = []
    await runOne(
      [wrap(pay as unknown as Tool)],
      { cents: 5 },
      {
        gate: { admit: (call) => (gated.push(call.arguments), { type: 'allow' }) },
      },
    )
    expect(gated).toEqual([made])
    expect(seen.at(-1)).toEqual(['run', made])
    expect(transforms).toBe(1)
  })

  test('and one that copies the arguments is refused before they change a second time', async () => {
    const { pay, seen } = payTool()
    const copying = {
      ...pay,
      run: (args: JsonObject, given: never) => pay.run({ ...args }, given),
    } as unknown as Tool
    const { settled } = await runOne([copying], { cents: 5 })
    expect(settled[0]?.outcome).toMatchObject({ cause: { code: 'TOOL_ARGUMENTS_CHANGED' } })
    expect(seen).toEqual([['approval', made]])
  })
})

test('UPP-117 a hand-written tool is not parsed, even if it has a member named parse', async () => {
  const ran: unknown[] = []
  class Weather {
    readonly name = 'pay'
    readonly description = ''
    readonly parameters = { type: 'object', required: ['city'] }
    parse(): never {
      throw new Error('not called')
    }
    run(args: unknown): void {
      ran.push(args)
    }
  }
  await runOne([new Weather() as unknown as Tool], { town: 7 })
  expect(ran).toEqual([{ town: 7 }])
  expect(argumentParserOf(tool({ name: 'x', description: '', parameters: {}, run: () => 1 }))).toBe(
    undefined,
  )
})

describe('schemas whose value is not JSON', () => {
  test.each([
    ['Zod', z.object({ order: z.object({ due: z.date() }) }), 'order.due is a date'],
    [
      'Zod, the end of a pipe',
      z.object({ due: z.string().pipe(z.coerce.date()) }),
      'due is a date',
    ],
    [
      'Zod, in a list',
      z.object({ n: z.array(z.codec(z.string(), z.bigint(), { decode: BigInt, encode: String })) }),
      'n[] is a bigint',
    ],
    ['Valibot', toStandardJsonSchema(v.object({ due: v.date() })), 'it holds a date'],
    ['ArkType', type({ due: 'Date' }), 'it holds a date'],
    ['ArkType', type({ at: 'Map' }), 'it holds a Map'],
  ] as const)('%s: refused where the tool is defined', (_, schema, text) => {
    const define = () =>
      tool({ name: 'x', description: '', parameters: schema as never, run: () => 1 })
    expect(define).toThrow(text)
    expect(define).toThrow(
      expect.objectContaining({
        code: 'TOOL_DEFINITION_INVALID',
        cause: expect.objectContaining({
          code: 'SCHEMA_NOT_CONVERTIBLE',
          hint: expect.any(String) as string,
        }) as Error,
      }),
    )
  })

  test.each([
    ['a Date', () => new Date(0)],
    ['a Map', () => new Map()],
    ['a bigint', () => 5n],
    ['NaN', () => Number.NaN],
    ['a function', () => () => 1],
    ['a Money', () => new (class Money {})()],
    [
      'part of itself',
      () => {
        const a: unknown[] = []
        a.push(a)
        return a
      },
    ],
  ])('%s that a transform makes fails the call', async (text, make) => {
    const schema = z.object({
      at: z.object({ deep: z.string().transform(() => make() as unknown) }),
    })
    const { pay, seen } = payTool({ schema })
    const { settled } = await runOne([pay], { at: { deep: 'x' } })
    const [{ outcome }] = settled as [(typeof settled)[0]]
    expect(outcome).toMatchObject({ type: 'error', cause: { code: 'TOOL_ARGUMENTS_NOT_JSON' } })
    expect(outcome.type === 'error' && outcome.message).toMatch(
      new RegExp(`at\\.deep.* is ${text}`),
    )
    expect(seen).toEqual([])
  })

  test('a schema that makes something other than an object fails the call', async () => {
    const schema = z.object({ n: z.number() }).transform(({ n }) => n)
    const { pay } = payTool({ schema: schema as never })
    const { settled } = await runOne([pay], { n: 1 })
    expect(settled[0]?.outcome).toMatchObject({ cause: { code: 'TOOL_ARGUMENTS_NOT_JSON' } })
  })

  test('members that are undefined are left out', async () => {
    const { pay, seen } = payTool({
      schema: z.object({ a: z.string().transform(() => undefined) }),
    })
    await runOne([pay], { a: 'x' })
    expect(seen.at(-1)).toEqual(['run', {}])
  })
})

test('a schema may write into what it validates, and the message does not change', async () => {
  const ran: unknown[] = []
  const pay = tool({
    name: 'pay',
    description: '',
    parameters: type({ n: 'string.numeric.parse', unit: 'string = "km"' }),
    run: (args) => void ran.push(args),
  })
  const model = scripted([calls('pay', { n: '7' }), says('Done.')])
  await llm({ model, tools: [pay] }).generate('Go.')
  expect(ran).toEqual([{ n: 7, unit: 'km' }])
  expect(model.requests[1]?.messages.find((one) => one.type === 'assistant')).toMatchObject({
    toolCalls: [{ arguments: { n: '7' } }],
  })
})
