/** Stop conditions next to limits, and the order in which middleware sees each inference. */
import { agent, AgentState, type AgentOptions, type Middleware } from '@skein/agents'
import { loop, react } from '@skein/agents/execution'
import { UserMessage, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'

const start = AgentState.initial()
const get: Tool = { name: 'get', description: 'd', parameters: { type: 'object' }, run: () => 1 }
/** Calls for ever; without tools it only speaks. */
const endless = () => scripted(({ tools }) => (tools.length > 0 ? calls('get') : says('thinking')))

test.each<[string, Partial<AgentOptions>, number, string]>([
  ['loop, by steps', { execution: loop({ maxIterations: 2 }) }, 2, 'max_iterations'],
  ['loop, by no round', { execution: loop({ maxIterations: 0 }) }, 1, 'max_iterations'],
  ['react, by steps', { execution: react({ maxSteps: 2 }) }, 2, 'max_steps'],
  ['rounds of tools', { toolStrategy: { maxIterations: 1 } }, 2, 'max_iterations'],
])(
  'UAP-137 the step at a limit is followed by the stop condition: %s',
  async (_, options, steps, limit) => {
    for (const stopsAt of [Infinity, steps])
      for (const streaming of [false, true]) {
        const asked: number[] = []
        const stopCondition = ({ step }: AgentState) => (asked.push(step), step >= stopsAt)
        const worker = agent({
          model: endless(),
          tools: [get],
          strategy: { stopCondition },
          ...options,
        })
        const { stopReason } = await (streaming
          ? worker.stream('x', start).result
          : worker.generate('x', start))
        expect(asked).toEqual(Array.from({ length: steps }, (_unused, index) => index + 1))
        expect(stopReason).toBe(stopsAt === steps ? 'stop_condition' : limit)
      }
  },
)

test('UAP-130 each hook of the middleware has its order, before every inference of the run too', async () => {
  const log: string[] = []
  const own = (name: string): Middleware => ({
    name,
    before: () => void log.push(`${name} before`),
    onInference: ({ messages, cycle }) => {
      log.push(`${name} inference ${cycle}`)
      return { messages: [...messages, new UserMessage(`${name} ${cycle}`)] }
    },
    after: () => void log.push(`${name} after`),
  })
  const model = scripted([calls('get'), says('done')])
  const middleware = ['a', 'b', 'c'].map(own)
  const strategy = { onInference: () => void log.push('hook') }
  await agent({ model, tools: [get], middleware, strategy }).generate('x', start)
  const inference = (cycle: number) => [...['a', 'b', 'c'].map((name) => `${name} inference ${cycle}`), 'hook'] // prettier-ignore
  expect(log).toEqual([
    'a before',
    'b before',
    'c before',
    ...inference(1),
    ...inference(2),
    'c after',
    'b after',
    'a after',
  ])
  // Each received the result of the previous one.
  const texts = model.requests[0]!.messages.map(({ text }) => text)
  expect(texts).toEqual(['x', 'a 1', 'b 1', 'c 1'])
})
