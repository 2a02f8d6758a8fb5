import { isDeepFrozen, type JsonObject } from '@skein/base'
import {
  defer,
  llm,
  withToolContext,
  type Message,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolResultMessage,
  type UPPError,
} from '@skein/ai'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

function tool(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name, description: `Runs ${name}.`, parameters: { type: 'object' }, run, ...more }
}

const results = (message: Message | undefined): ToolResultMessage['results'] =>
  (message as ToolResultMessage).results

const later = <T>(value: T, ms = 5): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms))

describe('the loop', () => {
  test('UPP-052 UPP-055 the core loops; a provider does one exchange at a time', async () => {
    const model = scripted([calls('echo', { n: 1 }), calls('echo', { n: 2 }), says('done')])
    const turn = await llm({ model, tools: [tool('echo', (args) => args)] }).generate('go')
    expect(model.requests.map(({ messages }) => messages.map(({ type }) => type))).toEqual([
      ['user'],
      ['user', 'assistant', 'tool_result'],
      ['user', 'assistant', 'tool_result', 'assistant', 'tool_result'],
    ])
    expect(results(model.requests[1]!.messages.at(-1))).toMatchObject([
      { toolCallId: 'call_1', result: { n: 1 }, isError: false },
    ])
    expect(turn.response.text).toBe('done')
  })

  test('UPP-113 call, approval, run, result, next inference', async () => {
    const log: string[] = []
    const model = scripted([
      calls('act', { x: 1 }),
      (request) => {
        log.push(`asked with ${request.messages.at(-1)?.type}`)
        return says('ok')
      },
    ])
    const act = tool('act', () => log.push('run'), { approval: () => log.push('approval') > 0 })
    await llm({ model, tools: [act] }).generate('go')
    expect(log).toEqual(['approval', 'run', 'asked with tool_result'])
  })

  test('UPP-054 several calls of one message overlap', async () => {
    let running = 0
    let most = 0
    const slow = tool('slow', async () => {
      most = Math.max(most, ++running)
      await later(null)
      running--
    })
    const model = scripted([[calls('slow'), calls('slow'), calls('slow')], says('ok')])
    await llm({ model, tools: [slow] }).generate('go')
    expect(most).toBe(3)
  })

  test('UPP-079 UPP-083 executions are reported with six fields, in call order', async () => {
    const wait = tool('wait', async ({ ms }: { ms: number }) => later(`waited ${ms}`, ms))
    const model = scripted([[calls('wait', { ms: 20 }), calls('wait', { ms: 1 })], says('ok')])
    const turn = await llm({ model, tools: [wait] }).generate('go')
    expect(turn.toolExecutions).toEqual([
      {
        toolName: 'wait',
        toolCallId: 'call_1',
        arguments: { ms: 20 },
        result: 'waited 20',
        isError: false,
        duration: expect.any(Number) as unknown,
      },
      expect.objectContaining({ toolCallId: 'call_2', result: 'waited 1' }),
    ])
    expect(turn.toolExecutions[0]!.duration).toBeGreaterThanOrEqual(15)
    expect(turn.toolExecutions[1]).toMatchObject({ toolName: 'wait', arguments: { ms: 1 } })
    expect(results(turn.messages[2]).map(({ toolCallId }) => toolCallId)).toEqual([
      'call_1',
      'call_2',
    ])
  })

  test('UPP-079 executions of all rounds are reported', async () => {
    const echo = tool('echo', (args: JsonObject) => args['n'])
    const model = scripted([
      [calls('echo', { n: 1 }), calls('echo', { n: 2 })],
      calls('echo', { n: 3 }),
      says('ok'),
    ])
    const turn = await llm({ model, tools: [echo] }).generate('go')
    expect(turn.toolExecutions.map(({ toolCallId, result }) => [toolCallId, result])).toEqual([
      ['call_1', 1],
      ['call_2', 2],
      ['call_3', 3],
    ])
  })

  test('UPP-083 what failed, was denied or is unknown is reported as an error', async () => {
    const broken = tool('broken', () => Promise.reject(new Error('out of order')))
    const denied = tool('denied', () => 'never', { approval: () => false })
    const called = [
      calls('broken', { n: 1 }),
      calls('denied', { n: 2 }),
      calls('unknown', { n: 3 }),
    ]
    const turn = await llm({
      model: scripted([called, says('ok')]),
      tools: [broken, denied],
    }).generate('go')
    expect(turn.toolExecutions.map(({ toolName, isError }) => [toolName, isError])).toEqual([
      ['broken', true],
      ['denied', true],
      ['unknown', true],
    ])
    expect(turn.toolExecutions.map((execution) => execution.arguments)).toEqual([
      { n: 1 },
      { n: 2 },
      { n: 3 },
    ])
    expect(turn.toolExecutions[0]?.result).toBe('out of order')
  })

  test('UPP-083 a failed call reports each execution that had ended, with its own arguments', async () => {
    const toolStrategy = {
      onBeforeCall: async (_: Tool, params: JsonObject) => {
        if (params['n'] !== 3) return true
        await later(undefined, 20)
        throw new Error('the rule is broken')
      },
    }
    const echo = tool('echo', (args: JsonObject) => `got ${JSON.stringify(args)}`)
    const called = [1, 2, 3].map((n) => calls('echo', { n }))
    const asking = llm({ model: scripted(() => called), tools: [echo], toolStrategy })
    for (const failing of [asking.generate('go'), asking.stream('go').turn]) {
      const { turn } = (await failing.catch((error: unknown) => error)) as UPPError
      expect(turn?.toolExecutions).toEqual(
        [1, 2].map((n) => ({
          toolName: 'echo',
          toolCallId: turn!.response.toolCalls![n - 1]!.toolCallId,
          arguments: { n },
          result: `got {"n":${n}}`,
          isError: false,
          duration: expect.any(Number) as unknown,
        })),
      )
      expect(results(turn?.messages.at(-1)).map(({ result }) => result)).toEqual([
        'got {"n":1}',
        'got {"n":2}',
      ])
      expect(turn?.openCalls).toEqual([{ toolCallId: turn!.response.toolCalls![2]!.toolCallId }])
    }
  })

  test('UPP-056 UPP-122 at the limit onMaxIterations is called and the turn comes back with its calls open', async () => {
    for (const limit of [0, 1, 2]) {
      const model = scripted(() => calls('echo'))
      const reached: number[] = []
      const toolStrategy = {
        maxIterations: limit,
        onMaxIterations: (n: number) => void reached.push(n),
      }
      const echo = tool('echo', () => 'x')
      const turn = await llm({ model, tools: [echo], toolStrategy }).generate('go')
      expect(turn.cycles).toBe(limit + 1)
      expect(turn.toolExecutions).toHaveLength(limit)
      expect(turn.response.hasToolCalls).toBe(true)
      expect(turn.openCalls).toEqual([{ toolCallId: `call_${limit + 1}` }])
      // With a limit of 0 the caller runs the tools, and no limit was reached.
      expect(reached).toEqual(limit === 0 ? [] : [limit])
    }
  })

  test('UPP-121 ten rounds by default', async () => {
    const model = scripted(() => calls('echo'))
    const turn = await llm({ model, tools: [tool('echo', () => 'x')] }).generate('go')
    expect(turn.toolExecutions).toHaveLength(10)
    expect(turn.cycles).toBe(11)
  })

  test('UPP-166 zero iterations hand the calls to the caller', async () => {
    const model = scripted([calls('echo', { n: 1 })])
    const ran: unknown[] = []
    const echo = tool('echo', (args) => ran.push(args))
    const toolStrategy = {
      maxIterations: 0,
      onMaxIterations: () => {
        throw new Error('not a limit that was reached')
      },
    }
    const turn = await llm({ model, tools: [echo], toolStrategy }).generate('go')
    expect(ran).toEqual([])
    expect(turn.cycles).toBe(1)
    expect(turn.response.toolCalls).toMatchObject([{ toolName: 'echo', arguments: { n: 1 } }])
    expect(turn.openCalls).toEqual([{ toolCallId: 'call_1' }])
    expect(turn.messages.map(({ type }) => type)).toEqual(['user', 'assistant'])
  })

  test('a throwing onMaxIterations fails the turn, and the error carries it', async () => {
    const toolStrategy = {
      maxIterations: 1,
      onMaxIterations: () => {
        throw new Error('enough')
      },
    }
    const model = scripted(() => calls('echo'))
    const asking = llm({ model, tools: [tool('echo', () => 'x')], toolStrategy }).generate('go')
    const error = await asking.catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', provider: 'scripted' })
    expect(error).toMatchObject({ message: expect.stringContaining('enough') as unknown })
    expect((error as { turn: { toolExecutions: unknown[] } }).turn.toolExecutions).toHaveLength(1)
  })

  test('a paused answer is continued, within bounds', async () => {
    const model = scripted([[says('part '), stops('pause')], says('rest')])
    const turn = await llm({ model }).generate('go')
    expect(turn.messages.map(({ text }) => text)).toEqual(['go', 'part ', 'rest'])
    expect(turn.cycles).toBe(2)
    const endless = await llm({ model: scripted(() => [says('x'), stops('pause')]) }).generate('go')
    expect(endless.stopReason).toBe('pause')
    expect(endless.cycles).toBeLessThan(20)
  })
})

describe('what the model receives', () => {
  const told = async (
    tools: Tool[],
    call: ReturnType<typeof calls>,
  ): Promise<ToolResultMessage['results'][number]> => {
    const model = scripted([call, says('ok')])
    const turn = await llm({ model, tools }).generate('go')
    expect(turn.response.text).toBe('ok')
    return results(model.requests[1]!.messages.at(-1))[0]!
  }

  test('UPP-114 a denied call is an error result and does not run', async () => {
    const ran: unknown[] = []
    const answers = [false, Promise.resolve(false), undefined as unknown as boolean]
    for (const answer of answers) {
      const act = tool('act', () => ran.push('ran'), { approval: () => answer })
      const result = await told([act], calls('act'))
      expect(result).toMatchObject({ toolCallId: 'call_1', isError: true })
      expect(result.result).toContain('denied')
    }
    expect(ran).toEqual([])
  })

  test('UPP-115 a throwing tool is an error result', async () => {
    const asynchronously = tool('boom', () => Promise.reject(new TypeError('bad thing')))
    const atOnce = tool('boom', () => {
      throw new TypeError('bad thing')
    })
    for (const boom of [asynchronously, atOnce])
      expect(await told([boom], calls('boom'))).toMatchObject({
        result: 'bad thing',
        isError: true,
      })
  })

  test('UPP-116 an unknown tool is an error result that names the known ones', async () => {
    for (const name of ['nope', 'constructor', '__proto__']) {
      const result = await told([tool('known', () => 1)], calls(name))
      expect(result.isError).toBe(true)
      expect(result.result).toContain('known')
    }
  })

  test('truncated or malformed arguments never run a tool; no text means no arguments', async () => {
    const ran: unknown[] = []
    const act = tool('act', (args) => {
      ran.push(args)
      return 'fine'
    })
    for (const text of ['{"path":"/tm', '[1]', '"x"', 'null', '{"a":1} {'])
      expect(await told([act], calls('act', text))).toMatchObject({ isError: true })
    expect(ran).toEqual([])
    expect(await told([act], calls('act', ''))).toMatchObject({ result: 'fine' })
    expect(ran).toEqual([{}])
  })

  test('a call cut off by the token limit before its arguments does not run', async () => {
    const ran: unknown[] = []
    const act = tool('act', (args) => ran.push(args))
    const model = scripted([[calls('act', ''), stops('max_tokens')], says('ok')])
    const turn = await llm({ model, tools: [act] }).generate('go')
    expect(ran).toEqual([])
    expect(turn.toolExecutions[0]).toMatchObject({ isError: true })
  })

  test('results of any kind become JSON, and the tool’s own object stays its own', async () => {
    const own = { list: [1], when: new Date(0), bytes: new Uint8Array([1]) }
    const result = await told([tool('give', () => own)], calls('give'))
    expect(result.result).toEqual({
      list: [1],
      when: '1970-01-01T00:00:00.000Z',
      bytes: { $bytes: 'AQ==' },
    })
    expect(isDeepFrozen(result)).toBe(true)
    own.list.push(2)
    expect(result.result).toMatchObject({ list: [1] })
  })
})

describe('arguments', () => {
  test('UPP-117 UPP-160 arguments are not validated: wrong types reach run untouched', async () => {
    const seen: unknown[] = []
    const strict = tool('strict', (args) => seen.push(args), {
      parameters: {
        type: 'object',
        properties: { n: { type: 'integer' } },
        required: ['n'],
        additionalProperties: false,
      },
    })
    const wrong = { n: 'not a number', extra: [null, { deep: true }] }
    const model = scripted([calls('strict', wrong), says('ok')])
    const turn = await llm({ model, tools: [strict] }).generate('go')
    expect(seen).toEqual([wrong])
    expect(turn.toolExecutions[0]?.isError).toBe(false)
  })

  test('UPP-159 hostile arguments neither pollute nor crash', async () => {
    const seen: JsonObject[] = []
    const act = tool('act', (args) => void seen.push(args))
    const hostile = [
      '{"__proto__":{"polluted":true},"a":{"__proto__":{"polluted":true}}}',
      '{"\\u005f_proto__":{"polluted":true}}',
      '{"constructor":{"prototype":{"polluted":true}}}',
      JSON.stringify({ text: 'x'.repeat(2_000_000) }),
      `{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
    ]
    const model = scripted([hostile.map((text) => calls('act', text)), says('ok')])
    const turn = await llm({ model, tools: [act] }).generate('go')
    expect(turn.response.text).toBe('ok')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    for (const args of seen) {
      expect(Object.getPrototypeOf(args)).toBe(Object.prototype)
      expect(Object.assign({}, args)).not.toHaveProperty('polluted')
      expect(JSON.stringify(args)).not.toContain('__proto__')
    }
    expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([
      false,
      false,
      false,
      false,
      true,
      true, // nested too deeply to be written out again
    ])
  })

  test('what was judged is what runs: frozen, no matter who keeps a reference', async () => {
    const seen: unknown[] = []
    const replacement = { amount: 1 }
    const pay = tool('pay', (args) => void seen.push(args), {
      approval: (args: { amount: number }) => {
        expect(() => (args.amount = 1_000)).toThrow(TypeError)
        replacement.amount = 1_000
        return args.amount === 1
      },
    })
    const toolStrategy = { onBeforeCall: () => ({ proceed: true, params: replacement }) }
    const model = scripted([calls('pay', { amount: 5 }), says('ok')])
    const turn = await llm({ model, tools: [pay], toolStrategy }).generate('go')
    expect(seen).toEqual([{ amount: 1 }])
    expect(turn.toolExecutions[0]?.arguments).toEqual({ amount: 1 })
    expect(turn.response.text).toBe('ok')
  })
})

describe('definition', () => {
  test('UPP-112 tool names are unique in an instance', () => {
    const make = (): unknown =>
      llm({
        model: scripted([]),
        tools: [tool('a', () => 1), tool('b', () => 1), tool('a', () => 1)],
      })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
    expect(make).toThrow('"a"')
  })

  test('UPP-112 a tool has name, description, parameters, run, and reaches the provider whole', async () => {
    const metadata = { scripted: { cache: true } }
    const full = tool('full', () => 1, { metadata, approval: () => true })
    const model = scripted([says('ok')])
    await llm({ model, tools: [full] }).generate('go')
    expect(model.requests[0]!.tools).toEqual([full])
  })

  test('run gets the context by its number of parameters or by the marker', async () => {
    const seen: Record<string, unknown[]> = {}
    const note =
      (name: string) =>
      (...given: unknown[]): void => {
        seen[name] = given
      }
    const tools = [
      tool('one', (args) => note('one')(args)),
      tool('two', (args, context) => note('two')(args, context)),
      tool('rest', note('rest')),
      withToolContext(tool('marked', note('marked'))),
    ]
    const model = scripted([tools.map(({ name }) => calls(name, { name })), says('ok')])
    await llm({ model, tools }).generate('go')
    expect(seen['one']).toEqual([{ name: 'one' }])
    expect(seen['rest']).toEqual([{ name: 'rest' }])
    for (const name of ['two', 'marked']) {
      const [args, context] = seen[name] as [unknown, ToolContext]
      expect(args).toEqual({ name })
      expect(context.toolName).toBe(name)
      expect(context.toolCallId).toMatch(/^call_/)
      expect(context.signal).toBeInstanceOf(AbortSignal)
    }
  })

  test('run keeps its `this`', async () => {
    class Counter {
      readonly name = 'count'
      readonly description = 'Counts.'
      readonly parameters = { type: 'object' }
      #count = 0
      run(): number {
        return ++this.#count
      }
    }
    const model = scripted([[calls('count'), calls('count')], says('ok')])
    const turn = await llm({ model, tools: [new Counter()] }).generate('go')
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual([1, 2])
  })
})

describe('strategy', () => {
  test('UPP-122 the hooks fire in order with tool, parameters and call', async () => {
    const log: unknown[] = []
    const good = tool('good', ({ n }: { n: number }) => n * 2)
    const bad = tool('bad', () => {
      throw new Error('broken')
    })
    const toolStrategy = {
      onToolCall: (of: Tool, params: JsonObject, call: ToolCall) =>
        void log.push(['call', of, params, call.toolCallId]),
      onBeforeCall: (of: Tool, params: JsonObject, call: ToolCall) => {
        log.push(['before', of, params, call.toolCallId])
        return true
      },
      onAfterCall: (of: Tool, params: JsonObject, result: unknown, call: ToolCall) =>
        void log.push(['after', of, params, result, call.toolCallId]),
      onError: async (of: Tool, params: JsonObject, error: Error, call: ToolCall) =>
        void log.push(['error', of, params, error.message, call.toolCallId]),
    }
    const model = scripted([calls('good', { n: 4 }), calls('bad', { n: 5 }), says('ok')])
    await llm({ model, tools: [good, bad], toolStrategy }).generate('go')
    expect(log).toEqual([
      ['call', good, { n: 4 }, 'call_1'],
      ['before', good, { n: 4 }, 'call_1'],
      ['after', good, { n: 4 }, 8, 'call_1'],
      ['call', bad, { n: 5 }, 'call_2'],
      ['before', bad, { n: 5 }, 'call_2'],
      ['error', bad, { n: 5 }, 'broken', 'call_2'],
    ])
  })

  test('UPP-122 onBeforeCall may stop a call or replace its arguments', async () => {
    const ran: unknown[] = []
    const act = tool('act', (args) => ran.push(args))
    const decisions = [false, { proceed: false }, { proceed: true, params: { n: 9 } }, undefined]
    const model = scripted([decisions.map((_, n) => calls('act', { n })), says('ok')])
    const toolStrategy = {
      onBeforeCall: async (_: Tool, { n }: JsonObject) => decisions[n as number],
    }
    const turn = await llm({ model, tools: [act], toolStrategy }).generate('go')
    expect(ran).toEqual([{ n: 9 }, { n: 3 }])
    expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, true, false, false])
  })

  test('UPP-122 onAfterCall may replace what the model sees', async () => {
    const model = scripted([calls('secret'), says('ok')])
    const toolStrategy = { onAfterCall: () => ({ result: 'hidden' }) }
    const turn = await llm({ model, tools: [tool('secret', () => 4711)], toolStrategy }).generate(
      'x',
    )
    expect(results(model.requests[1]!.messages.at(-1))[0]?.result).toBe('hidden')
    expect(turn.toolExecutions[0]?.result).toBe('hidden')
  })

  test('a throwing hook fails the turn instead of telling the model', async () => {
    for (const hook of ['onToolCall', 'onBeforeCall', 'onAfterCall'] as const) {
      const toolStrategy = {
        [hook]: () => {
          throw new Error('hook broke')
        },
      }
      const model = scripted([calls('act'), says('never')])
      const asking = llm({ model, tools: [tool('act', () => 1)], toolStrategy }).generate('go')
      await expect(asking).rejects.toThrow(`${hook} of the tool strategy failed: hook broke`)
      expect(model.requests).toHaveLength(1)
    }
  })
})

test('a dependency counts when it succeeded in the history or in an earlier round', async () => {
  const tools = [tool('login', () => 'in'), tool('pay', () => 'paid', { dependsOn: ['login'] })]
  const earlier = await llm({
    model: scripted([calls('pay'), calls('login'), calls('pay'), says('ok')]),
    tools,
  }).generate('go')
  expect(earlier.toolExecutions.map(({ toolName, isError }) => [toolName, isError])).toEqual([
    ['pay', true],
    ['login', false],
    ['pay', false],
  ])
  const model = scripted([calls('pay'), says('ok')])
  const turn = await llm({ model, tools }).generate(earlier.messages, 'again')
  expect(turn.toolExecutions).toMatchObject([{ toolName: 'pay', isError: false }])
})

describe('deferral', () => {
  test('a deferred call ends the turn as data, after its siblings finished', async () => {
    const wait = tool('wait', async () => later('slow result', 20))
    const ask = tool('ask', () => 'never', {
      approval: () => defer({ kind: 'approval', request: { why: 'money' } }),
    })
    const child = tool('child', () => defer({ kind: 'child', request: 'thread-7' }))
    const model = scripted([[calls('ask'), calls('wait'), calls('child')]])
    const turn = await llm({ model, tools: [wait, ask, child] }).generate('go')
    expect(turn.openCalls).toEqual([
      { toolCallId: 'call_1', request: { kind: 'approval', request: { why: 'money' } } },
      { toolCallId: 'call_3', request: { kind: 'child', request: 'thread-7' } },
    ])
    expect(turn.toolExecutions).toMatchObject([{ toolName: 'wait', result: 'slow result' }])
    expect(results(turn.messages.at(-1))).toMatchObject([{ toolCallId: 'call_2' }])
    expect(JSON.parse(JSON.stringify(turn.openCalls))).toEqual(turn.openCalls)
  })
})

test('UPP-079 executions of several rounds are in the order in which they ran, generated or streamed', async () => {
  const tools = ['a', 'b', 'c'].map((name) => ({
    name,
    description: name,
    parameters: { type: 'object' },
    run: () => name,
  }))
  for (const how of ['generate', 'stream'] as const) {
    const model = scripted([[calls('a'), calls('b')], calls('c'), calls('a'), says('done')])
    const instance = llm({ model, tools })
    const turn = await (how === 'generate' ? instance.generate('x') : instance.stream('x').turn)
    expect(turn.toolExecutions.map(({ toolName }) => toolName)).toEqual(['a', 'b', 'c', 'a'])
    expect(turn.usageByCycle).toHaveLength(4)
  }
})
