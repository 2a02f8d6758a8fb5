/** Whatever a tool throws, and wherever: the model gets an error result and the turn goes on. */
import {
  defer,
  llm,
  UPPError,
  type ErrorCode,
  type Tool,
  type ToolResultMessage,
  type ToolUseStrategy,
} from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

const upp = (code: ErrorCode) =>
  new UPPError('no', { code, provider: 'inner', modality: 'llm', statusCode: 429 })

const thrown: Record<string, unknown> = {
  'an error': new Error('no'),
  'an error of another type': new TypeError('no'),
  'an error with a code': Object.assign(new Error('no'), { code: 'CANCELLED' }),
  'a UPPError': upp('RATE_LIMITED'),
  'a UPPError that says CANCELLED': upp('CANCELLED'),
  'a UPPError that says INVALID_RESPONSE': upp('INVALID_RESPONSE'),
  'an AbortError of its own': new DOMException('no', 'AbortError'),
  'a TimeoutError of its own': new DOMException('no', 'TimeoutError'),
  'an object': { message: 'no' },
  'null': null, // prettier-ignore
}

function act(run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name: 'act', description: '', parameters: { type: 'object' }, run, ...more }
}

const places: Record<string, (error: unknown) => Tool> = {
  'run': (error) => act(() => raise(error)), // prettier-ignore
  'run, later': (error) => act(async () => raise(error)),
  'run, after progress': (error) =>
    act(async function* () {
      yield 'half'
      raise(error)
    }),
  'run, within its time': (error) => act(() => Promise.reject(error), { timeoutMs: 60_000 }), // oxlint-disable-line prefer-promise-reject-errors
  'toModel': (error) => act(() => 1, { toModel: () => raise(error) }), // prettier-ignore
  'approval': (error) => act(() => 1, { approval: () => raise(error) }), // prettier-ignore
  'approval, later': (error) => act(() => 1, { approval: async () => raise(error) }),
}

function raise(error: unknown): never {
  throw error
}

describe.each(Object.entries(places))('%s', (place, make) => {
  test.each(Object.entries(thrown))('UPP-115 UPP-114 throws %s', async (_, error) => {
    const given: Error[] = []
    const onError: ToolUseStrategy['onError'] = (_tool, _args, one) => void given.push(one)
    const other: Tool = { ...act(() => 'fine'), name: 'other' }
    for (const way of ['generate', 'stream'] as const) {
      const model = scripted([[calls('act'), calls('other')], says('ok')])
      const talker = llm({ model, tools: [make(error), other], toolStrategy: { onError } })
      const turn = await (way === 'generate' ? talker.generate('x') : talker.stream('x').turn)
      const told = model.requests[1]?.messages.at(-1) as ToolResultMessage
      expect(told.results.map(({ isError }) => isError)).toEqual([true, false])
      expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, false])
      expect([turn.response.text, turn.openCalls]).toEqual(['ok', []])
    }
    // The error of `toModel` is not one of the run, which had succeeded.
    expect(given).toHaveLength(place === 'toModel' ? 0 : 2)
    if (error instanceof Error) for (const one of given) expect(one).toBe(error)
  })
})

test('UPP-115 a tool whose own model fails is an error result with the reason', async () => {
  const inner = llm({ model: scripted([fails({ message: 'too fast', code: 'RATE_LIMITED' })]) })
  const model = scripted([calls('act'), says('ok')])
  const turn = await llm({ model, tools: [act(() => inner.generate('x'))] }).generate('x')
  expect(turn.toolExecutions).toMatchObject([{ isError: true, result: 'too fast' }])
  expect(turn.response.text).toBe('ok')
})

test('UPP-115 a call that cannot wait for an answer is an error result', async () => {
  const wrong = { kind: 'tomorrow', request: 1 } as never
  const model = scripted([calls('act'), says('ok')])
  const turn = await llm({ model, tools: [act(() => defer(wrong))] }).generate('x')
  expect(turn.toolExecutions).toMatchObject([{ isError: true }])
  expect(turn.response.text).toBe('ok')
})
