import { describe, expect, test } from 'vitest'
import type { StopReason, Tool } from '@skein/ai'
import { google } from '@skein/ai/google'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { agent, AgentState, subagent } from '../index.ts'
import { mcpHandlers } from '../mcp/index.ts'
import { loop, plan, react } from './index.ts'

const start = AgentState.initial()

describe('an answer that is not whole is not complete', () => {
  const strategies = { loop: loop(), react: react(), plan: plan() }
  const reasons: readonly StopReason[] = [
    'max_tokens',
    'refusal',
    'content_filter',
    'context_window',
  ]
  test.each(
    Object.entries(strategies).flatMap(([name, execution]) =>
      reasons.map((reason) => [name, reason, execution] as const),
    ),
  )('%s: %s', async (_, reason, execution) => {
    const model = scripted(({ structure }) =>
      structure
        ? says('{"steps":[{"id":"a","description":"Do a","dependsOn":[]}]}')
        : [says('As far as I'), stops(reason)],
    )
    const ends: unknown[] = []
    const run = agent({ model, execution }).stream('go', start)
    for await (const { uap } of run) if (uap?.type === 'step_end') ends.push(uap.data.stopReason)
    const { stopReason, turn } = await run.result
    expect([stopReason, ends.at(-1)]).toEqual([reason, reason])
    expect(turn.stopReason).toBe(reason)
  })

  test('a reason that is not known is complete with a text, and not without one', async () => {
    const end = async (...parts: Parameters<typeof scripted>[0] & readonly unknown[]) =>
      (await agent({ model: scripted(parts as never) }).generate('go', start)).stopReason
    expect(await end([says('hello'), stops('other')])).toBe('complete')
    expect(await end([stops('other')])).toBe('other')
    expect(await end([says('hello'), stops('stop_sequence')])).toBe('complete')
  })
})

test('an agent that serves MCP clients answers with an error if its answer is not whole', async () => {
  for (const reason of ['refusal', 'content_filter', 'max_tokens'] as const) {
    const served = {
      name: 'ask',
      description: 'Asks.',
      parameters: { type: 'object' },
      agent: agent({ model: scripted([[says('As far as I'), stops(reason)]]) }),
      prompt: () => 'How?',
    }
    const { callTool } = mcpHandlers({ agents: [served] })
    const { signal } = new AbortController()
    const { isError, content } = await callTool({ params: { name: 'ask' } }, { signal })
    expect(isError).toBe(true)
    const text = expect.stringMatching(`"ask".*\\(${reason}\\).*As far as I`)
    expect(content).toEqual([{ type: 'text', text }])
  }
})

test('a sub-agent that was refused is a failed call, and its trace says so', async () => {
  for (const reason of ['refusal', 'content_filter', 'max_tokens'] as const) {
    const child = agent({ model: scripted([[stops(reason)]]) })
    const ask = subagent({
      name: 'ask',
      description: 'Asks.',
      parameters: { type: 'object' },
      agent: child,
      prompt: () => 'How?',
    })
    const model = scripted([calls('ask', {}), says('It said no.')])
    const { turn, state } = await agent({ model, tools: [ask] }).generate('go', start)
    expect(turn.toolExecutions[0]).toMatchObject({
      isError: true,
      result: expect.stringContaining(`(${reason})`),
    })
    expect(state.subagentTraces).toMatchObject([
      { success: false, error: expect.stringContaining(reason) },
    ])
  }
})

describe('calls that Gemini wrote malformed', () => {
  const look: Tool = {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    run: () => 'seen',
  }
  type Answer = { readonly finishReason: string; readonly parts?: readonly object[] }

  /** A vendor that gives these answers, the last one again and again; returns what it was asked. */
  function gemini(...answers: readonly Answer[]) {
    const bodies: { contents: unknown[] }[] = []
    const fetch = (async (_: unknown, init: RequestInit) => {
      const { finishReason, parts } = answers[Math.min(bodies.length, answers.length - 1)]!
      bodies.push(JSON.parse(String(init.body)))
      const candidate = {
        finishReason,
        index: 0,
        ...(parts && { content: { role: 'model', parts } }),
      }
      return Response.json({
        candidates: [candidate],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1, totalTokenCount: 11 },
      })
    }) as typeof globalThis.fetch
    const worker = agent({
      model: google('gemini-x'),
      config: { fetch, apiKey: 'k' },
      tools: [look],
    })
    return { worker, bodies }
  }

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE'])(
    '%s is asked for again with the same request; both are paid for',
    async (finishReason) => {
      const { worker, bodies } = gemini(
        { finishReason },
        { finishReason: 'STOP', parts: [{ functionCall: { name: 'look', args: {} } }] },
        { finishReason: 'STOP', parts: [{ text: 'seen' }] },
      )
      const { turn, state, stopReason } = await worker.generate('look', start)
      expect([stopReason, turn.response.text]).toEqual(['complete', 'seen'])
      expect(bodies[1]).toEqual(bodies[0])
      expect(turn.usage.totalTokens).toBe(33)
      expect(turn.warnings).toMatchObject([
        { code: 'malformed_answer', message: expect.stringContaining(finishReason) },
      ])
      expect(state.messages.map(({ type }) => type)).toEqual([
        'user',
        'assistant',
        'tool_result',
        'assistant',
      ])
    },
  )

  test('is asked for again twice at most; then the run says that it is not complete', async () => {
    const { worker, bodies } = gemini({ finishReason: 'MALFORMED_FUNCTION_CALL' })
    const { turn, stopReason } = await worker.generate('look', start)
    expect(bodies.length).toBe(3)
    expect(stopReason).toBe('other')
    expect(turn.rawStopReason).toBe('MALFORMED_FUNCTION_CALL')
    expect(turn.usage.totalTokens).toBe(33)
  })
})
