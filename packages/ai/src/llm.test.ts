import { describe, expect, test } from 'vitest'
import type { StreamEvent } from './contract/event.ts'
import { llm, type LLMInstance } from './llm.ts'
import {
  type AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from './contract/message.ts'
import type { Middleware } from './contract/middleware.ts'
import { calls, fails, says, scripted, waits } from './testing/index.ts'
import { toToolResult } from './tools/outcome.ts'
import type { Tool, ToolContext } from './contract/tool.ts'
import type { Turn } from './contract/turn.ts'

const double: Tool = {
  name: 'double',
  description: 'Doubles.',
  parameters: { type: 'object' },
  run: ({ n }: { n: number }) => n * 2,
}

/** Reads a generator to its end: its events and what it returned. */
async function drain<R>(
  generator: AsyncGenerator<readonly StreamEvent[], R>,
): Promise<{ events: StreamEvent[]; result: R }> {
  const events: StreamEvent[] = []
  for (;;) {
    const step = await generator.next()
    if (step.done) return { events, result: step.value }
    events.push(...step.value)
  }
}

describe('infer: one inference for the agent layer', () => {
  test('it yields the events, runs no tool, and returns the message with usage and stop reason', async () => {
    const model = scripted([calls('double', { n: 2 })])
    const instance = llm({ model, tools: [double], toolStrategy: { maxIterations: 5 } })
    const { events, result } = await drain(instance.infer([new UserMessage('go')]))
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'tool_call_delta',
      'content_block_stop',
      'message_stop',
    ])
    expect(result).toMatchObject({ stopReason: 'tool_use', cycles: 1, toolExecutions: [] })
    expect(result.messages).toEqual([result.response])
    expect(result.usage.totalTokens).toBeGreaterThan(0)
    expect(result.openCalls).toEqual([{ toolCallId: 'call_1' }])
  })

  test('all hooks surround it, with the state of the run it belongs to', async () => {
    const log: string[] = []
    const state = new Map<string, unknown>()
    const probe: Middleware = {
      name: 'probe',
      onStart: (context) => void log.push(`start ${context.state === state}`),
      onCycle: (_, cycle) => void log.push(`cycle ${cycle}`),
      onStreamEvent: (event) => (event.type === 'text_delta' ? event : null),
      onEnd: ({ response }) => void log.push(`end ${(response as Turn).response.text}`),
    }
    const instance = llm({ model: scripted([says('hi')]), middleware: [probe] })
    const { events } = await drain(instance.infer([new UserMessage('x')], { state }))
    expect(log).toEqual(['start true', 'cycle 1', 'end hi'])
    expect(events.map(({ type }) => type)).toEqual(['text_delta'])
  })

  test('without streaming it uses the waiting call and shows middleware no events', async () => {
    const seen: string[] = []
    const probe: Middleware = {
      name: 'probe',
      onStart: ({ streaming }) => void seen.push(`streaming ${streaming}`),
      onStreamEvent: (event) => (seen.push(event.type), event),
    }
    const instance = llm({
      model: scripted([says('hi')], { capabilities: { streaming: false } }),
      middleware: [probe],
    })
    const { result } = await drain(instance.infer([new UserMessage('x')], { streaming: false }))
    expect(result.response.text).toBe('hi')
    expect(seen).toEqual(['streaming false'])
  })

  test('its own signal aborts it; leaving it early closes it and tells the middleware', async () => {
    const told: string[] = []
    const middleware: Middleware[] = [
      { name: 'm', onAbort: () => void told.push('abort'), onEnd: () => void told.push('end') },
    ]
    const model = scripted(() => [says('a b'), waits(Infinity)])
    const instance = llm({ model, middleware })
    const aborted = drain(
      instance.infer([new UserMessage('x')], { signal: AbortSignal.timeout(5) }),
    )
    await expect(aborted).rejects.toMatchObject({ code: 'CANCELLED' })
    for await (const events of instance.infer([new UserMessage('x')])) if (events) break
    expect(told).toEqual(['abort', 'abort'])
    expect(model.requests[1]?.signal.aborted).toBe(true)
  })
})

describe('executeTools: a batch with the instance’s tools, strategy and hooks', () => {
  test('an agent can drive the whole loop by hand', async () => {
    const log: string[] = []
    const middleware: Middleware[] = [
      {
        name: 'm',
        onToolCall: ({ toolName }, { state }) => void log.push(`${toolName} ${state.get('run')}`),
        onToolResult: (_, result) => void log.push(`result ${String(result)}`),
      },
    ]
    const toolStrategy = { onAfterCall: () => ({ result: 'changed' }) }
    const model = scripted([calls('double', { n: 2 }), says('four')])
    const instance = llm({ model, tools: [double], middleware, toolStrategy })
    const state = new Map<string, unknown>([['run', 7]])
    const messages: Message[] = [new UserMessage('go')]
    const first = await drain(instance.infer(messages, { state }))
    const batch = { calls: first.result.response.toolCalls ?? [], state }
    const { events, result } = await drain(instance.executeTools(batch))
    expect(events.map(({ type }) => type)).toEqual(['tool_execution_start', 'tool_execution_end'])
    messages.push(...first.result.messages, new ToolResultMessage(result.settled.map(toToolResult)))
    const second = await drain(instance.infer(messages, { state }))
    expect(second.result.response.text).toBe('four')
    expect(log).toEqual(['double 7', 'result changed'])
  })

  test('tools, context and signal may be the agent’s own', async () => {
    let seen: Partial<ToolContext> & { agentId?: string } = {}
    const own: Tool = {
      ...double,
      run: async (_: unknown, context: ToolContext) => {
        seen = context
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
      },
    }
    const instance: LLMInstance = llm({ model: scripted([]) })
    const running = drain(
      instance.executeTools({
        calls: [{ toolCallId: 'c1', toolName: 'double', arguments: {} }],
        tools: [own],
        open: () => ({ context: { agentId: 'a' } }),
        signal: AbortSignal.timeout(5),
      }),
    )
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED', provider: 'scripted' })
    expect(seen).toMatchObject({ agentId: 'a', toolCallId: 'c1' })
  })

  test('leaving it early stops its tools', async () => {
    let stopped = false
    const slow: Tool = {
      ...double,
      run: (_: unknown, { signal }: ToolContext) =>
        new Promise(() => signal.addEventListener('abort', () => (stopped = true))),
    }
    const instance = llm({ model: scripted([]), tools: [slow] })
    const batch = { calls: [{ toolCallId: 'c1', toolName: 'double', arguments: {} }] }
    for await (const events of instance.executeTools(batch)) if (events) break
    expect(stopped).toBe(true)
  })
})

test('the same error object may fail two calls: each carries its own turn', async () => {
  const step = [says('one'), fails('broken')]
  const instance = llm({ model: scripted(() => step) })
  const turns: unknown[] = []
  for (const input of ['a', 'b'])
    await instance
      .stream(input)
      .turn.catch((error: { turn: Turn }) => turns.push(error.turn.messages[0]?.text))
  expect(turns).toEqual(['a', 'b'])
})

test('two calls of one message with one id both run, and each result answers its own call', async () => {
  const model = scripted([
    [calls('look', { at: 1 }, { id: 'same' }), calls('look', { at: 2 }, { id: 'same' })],
    says('Done.'),
  ])
  const seen: unknown[] = []
  const look: Tool = {
    name: 'look',
    description: '',
    parameters: { type: 'object' },
    run: (params: { at: number }) => (seen.push(params.at), params.at),
  }
  const turn = await llm({ model, tools: [look] }).generate('go')
  expect(seen.toSorted()).toEqual([1, 2])
  const [, answer, results] = model.requests[1]?.messages ?? []
  const ids = (answer as AssistantMessage).toolCalls?.map(({ toolCallId }) => toolCallId) ?? []
  expect(new Set(ids).size).toBe(2)
  expect((results as ToolResultMessage).results).toMatchObject([
    { toolCallId: ids[0], result: 1 },
    { toolCallId: ids[1], result: 2 },
  ])
  expect(turn.toolExecutions.map(({ toolCallId }) => toolCallId).toSorted()).toEqual(ids.toSorted())
})
