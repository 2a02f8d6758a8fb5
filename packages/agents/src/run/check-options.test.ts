import { describe, expect, test } from 'vitest'
import { llm, type Middleware as LLMMiddleware, type StreamEvent } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { costMiddleware } from '@skein/ai/middleware'
import { openai } from '@skein/ai/openai'
import { openrouter } from '@skein/ai/openrouter'
import { says, scripted, stops } from '@skein/ai/testing'
import { agent, AgentState, type Middleware } from '../index.ts'
import { anyOf, maxCost, maxSteps } from '../middleware/index.ts'

const prices = { input: 3, output: 15 }
const cost = costMiddleware({ catalog: { 'anthropic/claude-x': { prices }, 'openai/gpt-x': {} } })

describe('middleware in the wrong option', () => {
  const model = scripted([])
  const ofAgent: Middleware = { name: 'mine', before: () => {} }

  test('of agent() is an error that names the right one', () => {
    const given = () => agent({ model, middleware: [cost as never] })
    expect(given).toThrow(/"cost" in middleware/)
    expect(given).toThrow(expect.objectContaining({ hint: expect.stringMatching(/llmMiddleware/) }))
    expect(() => agent({ model, llmMiddleware: [ofAgent as never] })).toThrow(
      /"mine" in llmMiddleware/,
    )
  })

  test('of llm() is one too', () => {
    const given = () => llm({ model, middleware: [ofAgent as never] })
    expect(given).toThrow(/"mine" would never be called/)
    expect(given).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(/agent\(\{ middle/) }),
    )
  })

  test('is allowed if it has hooks of both, or only onError', () => {
    const both = { name: 'both', before: () => {}, onRequest: () => {} }
    const onError = { name: 'errors', onError: () => {} }
    const middleware = [both, onError]
    expect(agent({ model, middleware, llmMiddleware: middleware }).middleware).toEqual(middleware)
    expect(() => llm({ model, middleware })).not.toThrow()
  })
})

describe('maxCost without a cost', () => {
  const strategy = { stopCondition: anyOf(maxSteps(5), maxCost(0.01)) }
  const define = (model: Parameters<typeof agent>[0]['model'], llmMiddleware?: LLMMiddleware[]) => {
    return () => agent({ model: model!, strategy, llmMiddleware })
  }

  test('is an error where the agent is defined, if no cost can be known', () => {
    expect(define(anthropic('claude-x'))).toThrow(/maxCost cannot limit the model "claude-x"/)
    expect(define(openai('gpt-y'))).toThrow(/"gpt-y" of openai: its cost is not known/)
    expect(define(anthropic('claude-y'), [cost])).toThrow(/"claude-y"/)
    expect(define(openai('gpt-x'), [cost])).toThrow(/"gpt-x"/)
  })

  test('is none if there is a price, or if the vendor or the application may say the cost', () => {
    const own = { name: 'own', onStreamEvent: (event: StreamEvent) => event }
    expect(define(anthropic('claude-x'), [cost])).not.toThrow()
    expect(define(openrouter('x/y'))).not.toThrow()
    expect(define(anthropic('claude-y'), [own])).not.toThrow()
  })

  test('is an error after the first inference otherwise', async () => {
    const usage = { inputTokens: 10, outputTokens: 1, totalTokens: 11 }
    const model = scripted(() => [says('hello'), stops('end_turn', { usage })])
    const run = agent({ model, strategy }).generate('go', AgentState.initial())
    await expect(run).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('cost is not known'),
      hint: expect.stringContaining('costMiddleware'),
    })
    expect(model.requests.length).toBe(1)
  })
})
