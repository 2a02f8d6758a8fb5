/** Rounds of several calls, answers of approvals, and what middleware is told of each outcome. */
import { llm, parsedObjectMiddleware, type Middleware, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'

function act(run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name: 'act', description: '', parameters: { type: 'object' }, run, ...more }
}

test.each([1, 2, 5])('UPP-121 the limit counts rounds of %j calls, not calls', async (count) => {
  const round = Array.from({ length: count }, () => calls('act'))
  for (const limit of [undefined, 1, 3]) {
    const toolStrategy = limit === undefined ? {} : { maxIterations: limit }
    const model = scripted(() => round)
    const turn = await llm({ model, tools: [act(() => 1)], toolStrategy }).generate('x')
    expect(turn.toolExecutions).toHaveLength((limit ?? 10) * count)
    expect(turn.openCalls).toHaveLength(count)
  }
})

test.each([false, undefined, null, 0, 1, '', 'no', 'true', {}, []])(
  'UPP-120 UPP-114 an approval that answers %j does not let the call run',
  async (answer) => {
    for (const approval of [() => answer, async () => answer]) {
      const ran: unknown[] = []
      const tool = act(() => ran.push(1), { approval: approval as never })
      const model = scripted([calls('act'), says('ok')])
      const turn = await llm({ model, tools: [tool] }).generate('x')
      expect(ran).toEqual([])
      expect(turn.toolExecutions).toMatchObject([{ isError: true }])
    }
  },
)

test('UPP-104 middleware is told the result of every call that ran, also of one that failed', async () => {
  const log: unknown[] = []
  const watch: Middleware = {
    name: 'watch',
    onToolCall: (call) => void log.push(['call', call.toolName]),
    onToolResult: (call, result, _context, outcome) =>
      void log.push([call.toolName, result, outcome.type]),
  }
  const fail = (): never => {
    throw new Error('no')
  }
  const tools = [
    { ...act(fail), name: 'fails' },
    { ...act(() => 0), name: 'zero' },
    { ...act(() => 1, { approval: () => false }), name: 'denied' },
  ]
  for (const tool of tools) {
    const model = scripted([calls(tool.name), says('ok')])
    await llm({ model, tools: [tool], middleware: [watch] }).generate('x')
  }
  expect(log).toEqual([
    ['call', 'fails'],
    ['fails', 'no', 'error'],
    ['call', 'zero'],
    ['zero', 0, 'done'],
  ])
})

test('UPP-100 every key that the built-in middleware keeps is under its name', async () => {
  let keys: string[] = []
  const watch: Middleware = { name: 'watch', onEnd: ({ state }) => void (keys = [...state.keys()]) }
  const middleware = [parsedObjectMiddleware(), watch]
  await llm({ model: scripted([says('{}')]), structure: {}, middleware }).stream('x').turn
  expect(keys.length).toBeGreaterThan(1)
  for (const key of keys) expect(key).toMatch(/^parsedObject:/)
})
