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
