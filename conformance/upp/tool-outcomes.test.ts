import type { JsonObject } from '@skein/base'
import {
  deny,
  defer,
  llm,
  tool as define,
  type Middleware,
  type Tool,
  type ToolResultMessage,
  type ToolUseStrategy,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

function tool(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name, description: `Runs ${name}.`, parameters: { type: 'object' }, run, ...more }
}

/** Runs a script of one message with calls, then an end; returns what the model received and the turn. */
async function runCalls(
  tools: readonly Tool[],
  script: Parameters<typeof scripted>[0] = [calls('act', { x: 1 }), says('ok')],
  options: { toolStrategy?: ToolUseStrategy; middleware?: Middleware[] } = {},
) {
  const model = scripted(script)
  const turn = await llm({ model, tools, ...options }).generate('go')
  const told = (model.requests[1]?.messages.at(-1) as ToolResultMessage | undefined)?.results
  return { told: told?.map(({ result, isError }) => ({ result, isError })), turn }
}

describe('hooks of the strategy', () => {
  test.each([{ x: 2 }, {}])(
    'UPP-122 UPP-104 UPP-114 arguments that onBeforeCall replaced with %j are those that everybody sees',
    async (params) => {
      const seen: Record<string, unknown> = {}
      const see = (place: string, args: unknown): void => void (seen[place] = args)
      const act = tool('act', (args) => see('run', args), {
        approval: (args) => {
          see('approval', args)
          return true
        },
      })
      const toolStrategy: ToolUseStrategy = {
        onBeforeCall: () => ({ proceed: true, params }),
        onAfterCall: (_tool, args, _result, call) => {
          see('onAfterCall', args)
          see('call of onAfterCall', call.arguments)
        },
      }
      const middleware: Middleware = {
        name: 'probe',
        onToolCall: (call) => see('onToolCall', call.arguments),
        onToolResult: (call) => see('onToolResult', call.arguments),
      }
      const model = scripted([calls('act', { x: 1 }), says('ok')])
      const stream = llm({ model, tools: [act], toolStrategy, middleware: [middleware] }).stream(
        'x',
      )
      for await (const event of stream)
        if (event.type === 'tool_execution_start') see('start', event.delta.arguments)
      see('turn', (await stream.turn).toolExecutions[0]?.arguments)
      const places = [
        'approval',
        'onToolCall',
        'start',
        'run',
        'onAfterCall',
        'call of onAfterCall',
        'onToolResult',
        'turn',
      ]
      expect(seen).toEqual(Object.fromEntries(places.map((place) => [place, params])))
    },
  )

  test.each([0, '', false, null, 'text', { a: [] }])(
    'UPP-122 onAfterCall may replace the result with %j',
    async (result) => {
      const toolStrategy: ToolUseStrategy = { onAfterCall: () => ({ result }) }
      const { told } = await runCalls([tool('act', () => 'own')], undefined, { toolStrategy })
      expect(told).toEqual([{ result, isError: false }])
    },
  )

  const outcomes: Record<string, { given: Tool; args?: JsonObject | string; hooks: string[] }> = {
    'a result': {
      given: tool('act', () => 1),
      hooks: ['onToolCall', 'onBeforeCall', 'onAfterCall'],
    },
    'an error': {
      given: tool('act', () => Promise.reject(new Error('no'))),
      hooks: ['onToolCall', 'onBeforeCall', 'onError'],
    },
    'a result that is no JSON': {
      given: tool('act', () => Number.NaN),
      hooks: ['onToolCall', 'onBeforeCall', 'onError'],
    },
    'a time limit': {
      given: tool('act', () => new Promise(() => {}), { timeoutMs: 1, risk: 'read_only' }),
      hooks: ['onToolCall', 'onBeforeCall', 'onError'],
    },
    'a denial': {
      given: tool('act', () => 1, { approval: () => false }),
      hooks: ['onToolCall', 'onBeforeCall'],
    },
    'a denial with its reason': {
      given: tool('act', () => 1, { approval: () => deny('not today') }),
      hooks: ['onToolCall', 'onBeforeCall'],
    },
    'a call that waits': {
      given: tool('act', () => defer({ kind: 'input', request: 'which?' })),
      hooks: ['onToolCall', 'onBeforeCall'],
    },
    'arguments that are no JSON': {
      given: tool('act', () => 1),
      args: '{"a":',
      hooks: ['onToolCall', 'onError'],
    },
    'an unknown tool': { given: tool('other', () => 1), hooks: [] },
  }
  test.each(Object.entries(outcomes))(
    'UPP-122 which hooks are called, and in which order: %s',
    async (_, { given, args = {}, hooks }) => {
      const log: string[] = []
      const toolStrategy: ToolUseStrategy = {
        onToolCall: () => void log.push('onToolCall'),
        onBeforeCall: () => void log.push('onBeforeCall'),
        onAfterCall: () => void log.push('onAfterCall'),
        onError: () => void log.push('onError'),
      }
      const { turn } = await runCalls([given], [calls('act', args), says('ok')], { toolStrategy })
      expect(log).toEqual(hooks)
      expect(turn.cycles).toBe(turn.openCalls.length > 0 ? 1 : 2)
    },
  )
})

test.each([false, { proceed: false }, { proceed: false, params: { x: 2 } }])(
  'UPP-122 UPP-114 a call that onBeforeCall skipped with %j is neither approved nor run',
  async (answer) => {
    const log: string[] = []
    const approval = (): boolean => log.push('approval') > 0
    const toolStrategy: ToolUseStrategy = { onBeforeCall: () => answer }
    const act = tool('act', () => log.push('ran'), { approval })
    const { told } = await runCalls([act], undefined, { toolStrategy })
    expect(log).toEqual([])
    expect(told).toEqual([{ result: expect.any(String) as unknown, isError: true }])
  },
)

test.each([undefined, null, true, { proceed: true }])(
  'UPP-122 a call continues when onBeforeCall gives %j',
  async (answer) => {
    const toolStrategy: ToolUseStrategy = { onBeforeCall: async () => answer as undefined }
    const { told } = await runCalls([tool('act', (args) => args)], undefined, { toolStrategy })
    expect(told).toEqual([{ result: { x: 1 }, isError: false }])
  },
)

test.each([new Error('x'), new TypeError('x'), 'text', null, undefined])(
  'UPP-114 an approval that throws %s does not let the call run',
  async (thrown) => {
    const ran: string[] = []
    const approval = (): boolean => {
      throw thrown
    }
    const { told } = await runCalls([tool('act', () => ran.push('ran'), { approval })])
    expect(ran).toEqual([])
    expect(told).toEqual([{ result: expect.any(String) as unknown, isError: true }])
  },
)

describe('UPP-115 a tool that fails is an error result, and the turn continues', () => {
  const cycle: unknown[] = []
  cycle.push(cycle)
  const thrower = (error: unknown) => (): never => {
    throw error
  }
  const failing: Record<string, Tool> = {
    'throws an error': tool('act', thrower(new Error('no'))),
    'throws a text': tool('act', thrower('no')),
    'throws undefined': tool('act', thrower(undefined)),
    'rejects': tool('act', () => Promise.reject(new Error('no'))), // prettier-ignore
    'gives a function': tool('act', () => () => 1),
    'gives NaN': tool('act', () => Number.NaN),
    'gives a cycle': tool('act', () => cycle),
    'fails in toModel': tool('act', () => 1, { toModel: thrower(new Error('no')) }),
    'gives no JSON in toModel': tool('act', () => 1, { toModel: () => Symbol('x') }),
    'fails after it has yielded': tool('act', async function* () {
      yield 'progress'
      throw new Error('no')
    }),
    'takes too long': tool('act', () => new Promise(() => {}), { timeoutMs: 1, risk: 'read_only' }),
  }
  test.each(Object.entries(failing))('UPP-115 a tool that %s', async (_, given) => {
    const { told, turn } = await runCalls(
      [given, tool('other', () => 'fine')],
      [[calls('act'), calls('other')], says('ok')],
    )
    expect(told).toEqual([
      { result: expect.any(String) as unknown, isError: true },
      { result: 'fine', isError: false },
    ])
    expect(turn.response.text).toBe('ok')
    expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, false])
  })
})

test.each([
  ['there are no tools', []],
  ['only the case differs', [tool('act', () => 'ran')]],
  ['the name is one of every object', [tool('act', () => 'ran')]],
] as const)('UPP-116 an unknown tool is an error result: %s', async (which, tools) => {
  const name = which.includes('object') ? 'constructor' : 'ACT'
  const toolStrategy: ToolUseStrategy = { onToolCall: () => {}, onBeforeCall: () => true }
  for (const options of [{}, { toolStrategy }]) {
    const { told, turn } = await runCalls(tools, [calls(name), says('ok')], options)
    expect(told).toEqual([{ result: expect.stringContaining(`no tool "${name}"`) as unknown, isError: true }]) // prettier-ignore
    expect([turn.response.text, turn.openCalls]).toEqual(['ok', []])
  }
})

test('UPP-117 UPP-160 arguments reach run as the model wrote them, whatever the schema says', async () => {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  }
  const written: JsonObject[] = [
    {},
    { city: 7 },
    { city: null, days: '3' },
    { town: 'Rome', nested: { a: [null, ''] } },
  ]
  for (const build of [(one: Tool) => one, (one: Tool) => define(one as never) as Tool])
    for (const args of written) {
      const seen: unknown[] = []
      const weather = build(tool('weather', (given) => seen.push(given), { parameters }))
      const { told } = await runCalls([weather], [calls('weather', args), says('ok')])
      expect(seen).toEqual([args])
      expect(told).toEqual([{ result: 1, isError: false }])
    }
})

test('UPP-159 arguments of 512 levels reach the tool, of 513 they do not', async () => {
  const nested = (levels: number): string =>
    `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
  for (const [levels, isError] of [
    [512, false],
    [513, true],
  ] as const) {
    const { told } = await runCalls(
      [tool('act', () => 'ran')],
      [calls('act', nested(levels)), says('ok')],
    )
    expect(told?.map((one) => one.isError)).toEqual([isError])
  }
})

test('UPP-159 no __proto__ is left, at any level and however it is written', async () => {
  const hostile = '{"x":1}'
  const written = ['"__proto__"', '"__\\u0070roto__"', '"\\u005f_proto__"']
  const places = written.flatMap((key) => [
    `{${key}:${hostile}}`,
    `{"a":{"b":{"c":[{${key}:${hostile}}]}}}`,
  ])
  for (const text of places) {
    const seen: string[] = []
    const act = tool('act', (args) => {
      seen.push(JSON.stringify(args))
      return 'ran'
    })
    await runCalls([act], [calls('act', text), says('ok')])
    expect(seen).toEqual([expect.not.stringContaining('__proto__')])
    expect(({} as { x?: number }).x).toBeUndefined()
  }
})
