import { llm, ToolResultMessage, UserMessage, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { agent } from '../agent.ts'
import { AgentState } from './state.ts'

const cycle: Record<string, unknown> = { name: 'loop' }
cycle['self'] = cycle

class Point {
  readonly x = 1
  readonly toString = (): string => 'a point'
}

/** What tools may return, including what JSON cannot hold. */
const values: Readonly<Record<string, unknown>> = {
  date: { at: new Date(0) },
  map: new Map([['a', 1]]),
  pairs: new Map([[{ a: 1 }, 2]]),
  set: new Set([1, 2]),
  bigint: { id: 7n },
  bytes: { photo: Uint8Array.of(1, 2) },
  marked: { $bytes: 'AQ==' },
  numbers: Float32Array.of(1, 0.5),
  error: new RangeError('too far'),
  instance: new Point(),
  nothing: undefined,
  holes: [1, undefined, 3],
  nan: { score: Number.NaN },
  function: { later: () => 1 },
  promise: [new Promise(() => {})],
  cycle,
}

describe('what a tool returns', () => {
  test.each(Object.entries(values))(
    '%s: same history in llm, agent and state',
    async (_, value) => {
      const tool: Tool = {
        name: 'get',
        description: 'Gets it.',
        parameters: { type: 'object' },
        run: () => value,
      }
      const script = [calls('get', {}), says('Done.')]
      const turn = await llm({ model: scripted(script), tools: [tool] }).generate('go')
      const run = await agent({ model: scripted(script), tools: [tool] }).generate(
        'go',
        AgentState.initial(),
      )
      const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(run.state)))
      const results = [turn.messages, run.state.messages, restored.messages].map((messages) =>
        messages
          .filter((message) => message instanceof ToolResultMessage)
          .flatMap((one) => one.results),
      )
      expect(results[0]).toHaveLength(1)
      expect(results[1]?.map(({ result, isError }) => ({ result, isError }))).toEqual(
        results[0]?.map(({ result, isError }) => ({ result, isError })),
      )
      expect(results[2]).toEqual(results[1])
    },
  )

  test('a result that cannot be passed on is an error the model reads, with the path of the value', async () => {
    const tool: Tool = {
      name: 'get',
      description: 'Gets it.',
      parameters: { type: 'object' },
      run: () => cycle,
    }
    const model = scripted([calls('get', {}), says('I see.')])
    const { state } = await agent({ model, tools: [tool] }).generate('go', AgentState.initial())
    expect(state.messages[2]).toMatchObject({
      results: [{ isError: true, result: expect.stringContaining('result.self') }],
    })
  })
})

describe('a value that JSON cannot hold, elsewhere in a state', () => {
  const refused = (state: AgentState, path: string): void => {
    const expected = { code: 'INVALID_REQUEST', message: expect.stringContaining(path) }
    expect(() => state.toJSON()).toThrow(expect.objectContaining(expected))
  }

  test('in a message of the application: a typed error with its path, never a RangeError', () => {
    const result = { toolCallId: 'c', result: cycle }
    refused(
      AgentState.initial().withMessages([new UserMessage('hi'), new ToolResultMessage([result])]),
      'messages[1].results[0].result.self',
    )
    let deep: unknown = 1
    for (let level = 0; level < 20_000; level++) deep = [deep]
    const tooDeep = new ToolResultMessage([{ toolCallId: 'c', result: deep }])
    refused(AgentState.initial().withMessage(tooDeep), 'messages[0].results[0].result')
  })

  test('in metadata and in what a call waits for', () => {
    refused(AgentState.initial().withMetadata('x', cycle), 'metadata.x.self')
    const request = { kind: 'input', request: cycle } as never // what a cast hides
    refused(
      AgentState.initial().withSuspension({ deferred: [{ toolCallId: 'c', request }] }),
      'suspension.deferred[0].request.request.self',
    )
  })
})

describe('a stored state that cannot be read', () => {
  const usage = {
    inputTokens: 1,
    outputTokens: 2,
    totalTokens: 3,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0.5,
  }
  const trace = {
    subagentId: 's',
    subagentType: 'helper',
    parentToolCallId: 'c',
    prompt: 'go',
    startTime: 1,
    endTime: 2,
    success: true,
    result: 'ok',
    error: 'no',
    usage: { ...usage, costUsd: 0 },
    toolExecutions: [
      {
        toolName: 'get',
        toolCallId: 'd',
        arguments: { a: 1 },
        result: 'x',
        isError: false,
        duration: 0,
      },
    ],
  }
  const result = {
    type: 'tool_result',
    id: 'm3',
    timestamp: '2026-01-01T00:00:00.000Z',
    content: [],
    results: [{ toolCallId: 'c', result: 'x' }],
  }
  const whole = {
    version: '1.0.0',
    id: 'state',
    step: 1,
    metadata: { a: 1 },
    messages: [
      { ...result, type: 'user', id: 'm1', content: [{ type: 'text', text: 'hi' }], results: undefined }, // prettier-ignore
      {
        ...result,
        type: 'assistant',
        id: 'm2',
        results: undefined,
        toolCalls: [{ toolCallId: 'c', toolName: 'get', arguments: {}, after: ['b'] }],
      },
    ],
    reasoning: ['because'],
    plan: [
      { id: 'p', description: 'first', tool: 'get', dependsOn: ['o'], status: 'pending' },
      { id: 'o', description: 'second', dependsOn: [], status: 'completed' },
    ],
    subagentTraces: [{ ...trace, children: [trace] }],
    suspension: {
      answered: result,
      deferred: [
        { toolCallId: 'd', request: { kind: 'approval', request: { a: 1 } }, answers: {} },
      ],
    },
    run: {
      id: 'r',
      origin: 'm1',
      revision: 1,
      steps: 1,
      subagentSteps: 0,
      durationMs: 5,
      usage,
      subagentUsage: usage,
    },
  }

  /** Every member at every depth, as the path that an error shows and the keys that lead there. */
  function membersOf(value: unknown, path = '', keys: string[] = []): [string, string[]][] {
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([key, inner]) => {
      const at = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
      const here: [string, string[]] = [at, [...keys, key]]
      return inner === undefined ? [] : [here, ...membersOf(inner, at, here[1])]
    })
  }

  function withMember(keys: readonly string[], change: (before: unknown) => unknown): unknown {
    const copy = JSON.parse(JSON.stringify(whole)) as Record<string, unknown>
    let part = copy
    for (const key of keys.slice(0, -1)) part = part[key] as Record<string, unknown>
    const last = keys.at(-1)!
    part[last] = change(part[last])
    return copy
  }

  /** A value of another kind, which holds a text that errors must not repeat. */
  const otherKind = (before: unknown): unknown =>
    typeof before === 'string' ? ['s3cret'] : Array.isArray(before) ? { s3cret: 1 } : 's3cret'

  // What applications and vendors put there is theirs; the content of a tool result is not read.
  const free =
    /^metadata\.a$|\.arguments\.a$|\.request\.request(\.a)?$|results\[0\]\.result$|\.after\[0\]$|^suspension\.answered\.content$|\.content\[0\]\.type$/
  const members = membersOf(whole).filter(([path]) => path !== 'version' && !free.test(path))

  test('the state itself can be read', () => {
    expect(JSON.parse(JSON.stringify(AgentState.fromJSON(whole as never)))).toMatchObject({
      ...(JSON.parse(JSON.stringify(whole)) as object),
    })
    expect(members.length).toBeGreaterThan(90)
  })

  test.each(members)('%s of another kind is named, with what was expected', (path, keys) => {
    const read = (): AgentState => AgentState.fromJSON(withMember(keys, otherKind) as never)
    expect(read).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(
          new RegExp(
            `^This is not the JSON of an agent state: ${path.replaceAll(/[[\].]/g, '\\$&')} is `,
          ),
        ),
      }),
    )
  })

  test.each<[string[], unknown, string]>([
    [['id'], '', 'id is a string, not an id'],
    [['step'], -1, 'step is -1, not a whole number from 0'],
    [['messages'], undefined, 'messages is missing, not a list'],
    [['messages', '0', 'content', '0', 'text'], 5, 'messages[0].content[0].text is not a string'],
    [['messages', '0', 'content', '0', 'type'], 'evil', 'messages[0]: Block 0 of a UserMessage has the type "evil"'], // prettier-ignore
    [['plan', '1', 'status'], 'done', 'plan[1].status is a string, not pending or in_progress or completed or failed'], // prettier-ignore
    [['subagentTraces', '0', 'children', '0', 'success'], 1, 'subagentTraces[0].children[0].success is 1, not a boolean'], // prettier-ignore
    [['suspension', 'deferred', '0', 'request', 'kind'], 'maybe', 'suspension.deferred[0].request.kind is a string, not approval or input or in_doubt or child or timer'], // prettier-ignore
    [['suspension', 'deferred', '0', 'request', 'request'], undefined, 'suspension.deferred[0].request.request is missing, not JSON'], // prettier-ignore
    [['suspension', 'answered', 'type'], 'user', 'suspension.answered is not a tool result'],
    [['run', 'usage', 'costUsd'], -1, 'run.usage.costUsd is -1, not a number from 0'],
  ])('%j = %j', (keys, value, problem) => {
    const json = withMember(keys, () => value)
    expect(() => AgentState.fromJSON(json as never)).toThrow(
      `This is not the JSON of an agent state: ${problem}.`,
    )
  })

  test('a text that may be private is not repeated', () => {
    const json = withMember(['run', 'steps'], () => 's3cret')
    expect(() => AgentState.fromJSON(json as never)).toThrow('run.steps is a string, not a number')
  })
})
