import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import {
  AssistantMessage,
  isAssistantMessage,
  isToolResultMessage,
  llm,
  type LLMRequest,
  type Message,
  type ModelReference,
  type Tool,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { openai } from '@skein/ai/openai'
import { calls, reasons, says, scripted, stops, vendorServer } from '@skein/ai/testing'
import { countOf } from '../../../../conformance/support/counts.ts'
import { agent, AgentState, type InferenceRequest, type Middleware } from '../index.ts'
import { pruneToolOutputs, slidingWindow, summarize } from './index.ts'

const LIMIT = 40_000
const ROUNDS = countOf({ fast: 60, all: 300, deep: 300 })
const page = 'x'.repeat(20_000)
const read: Tool = {
  name: 'read',
  description: 'Reads a page.',
  parameters: { type: 'object', properties: { page: { type: 'number' } } },
  run: () => page,
}
const start = AgentState.initial()

/** What a vendor would count: four characters of the body per token. */
const tokensOf = (request: { readonly body: unknown }): number =>
  Math.ceil(JSON.stringify(request.body).length / 4)

const summarizer = (): {
  readonly model: ReturnType<typeof scripted>
  readonly make: Middleware
} => {
  const model = scripted(() => says('They read pages.'))
  return { model, make: summarize(llm({ model }), { threshold: LIMIT, summarizerLimit: LIMIT }) }
}
const policies: Readonly<Record<string, () => Middleware>> = {
  pruneToolOutputs: () =>
    pruneToolOutputs({ contextLimit: LIMIT, outputReserve: 0, protectRecent: 12_000 }),
  slidingWindow: () => slidingWindow(50, { maxTokens: LIMIT }),
  summarize: () => summarizer().make,
}
const vendors: Readonly<Record<string, ModelReference>> = {
  anthropic: anthropic('claude-x'),
  openai: openai('gpt-x', { api: 'chat' }),
}

describe.each(Object.entries(policies))(`${ROUNDS} rounds of 20 kB in one run: %s`, (_, policy) => {
  test.each(Object.entries(vendors))(
    'no request to %s is above the limit or refused, and the state keeps everything',
    async (_vendor, model) => {
      let bytes = 0
      const vendor = vendorServer((request: LLMRequest, index) => {
        bytes = JSON.stringify(request.messages).length
        const usage = { inputTokens: Math.ceil(bytes / 4), outputTokens: 20 }
        if (index >= ROUNDS) return [says('done'), stops(undefined, { usage })]
        return [
          calls('read', { page: index }, { id: `call_${index}` }),
          stops(undefined, { usage }),
        ]
      })
      const reader = agent({
        model,
        config: { fetch: vendor.fetch, apiKey: 'k' },
        params: { max_tokens: 100 },
        tools: [read],
        middleware: [policy()],
      })
      const { state, stopReason } = await reader.generate('Read the book.', start)
      expect(stopReason).toBe('complete')
      expect(vendor.requests.length).toBe(ROUNDS + 1)
      expect(Math.max(...vendor.requests.map(tokensOf))).toBeLessThanOrEqual(LIMIT)
      // All that was read is still in the state, although the model was sent a part of it.
      const results = state.messages.filter(isToolResultMessage).flatMap((one) => one.results)
      expect(results.filter(({ result }) => result === page).length).toBe(ROUNDS)
    },
    60_000,
  )
})

test('the vendor’s own count of the last inference decides, not the estimate alone', async () => {
  const script = (inputTokens: number) =>
    scripted((_, index) => [
      index < 4 ? calls('read', { page: index }) : says('done'),
      stops(undefined, { usage: { inputTokens } }),
    ])
  const cleared = async (inputTokens: number): Promise<number> => {
    const model = script(inputTokens)
    const middleware = [
      pruneToolOutputs({ contextLimit: 30_000, outputReserve: 0, protectRecent: 0 }),
    ]
    await agent({ model, tools: [read], middleware }).generate('go', start)
    const last = model.requests.at(-1)!.messages.filter(isToolResultMessage)
    return last.filter((one) => one.results[0]?.result !== page).length
  }
  expect(await cleared(100)).toBe(0) // an estimate of about 20,000 tokens, all four fit
  expect(await cleared(29_000)).toBeGreaterThan(0) // system prompt and tools count too
})

test('a summary is written once per overflow and reused by later steps and later runs', async () => {
  const { model, make } = summarizer()
  const main = scripted((_, index) => (index % 21 < 20 ? calls('read', {}) : says('done')))
  const reader = agent({ model: main, tools: [read], middleware: [make] })
  const first = await reader.generate('go', start)
  const written = model.requests.length
  expect(written).toBeGreaterThan(0)
  expect(written).toBeLessThan(10)
  const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(first.state)))
  await reader.generate('and now?', stored)
  expect(main.requests[21]!.messages[0]!.text).toBe(
    '[Previous conversation summary]\nThey read pages.',
  )
  expect(main.requests[21]!.messages.at(-1)!.text).toBe('and now?')
})

test('a request to the summarizer is not above its limit either', async () => {
  const { model, make } = summarizer()
  const history = Array.from({ length: 60 }, () => [
    new UserMessage('read'),
    new AssistantMessage(page),
  ]).flat()
  const main = scripted([says('done')])
  await agent({ model: main, middleware: [make] }).generate('go', start.withMessages(history))
  expect(model.requests.length).toBeGreaterThan(1)
  for (const { messages } of model.requests)
    expect(messages[0]!.text.length / 4).toBeLessThanOrEqual(LIMIT * 1.05)
})

test('whatever the history, every policy sends each call with its results, after a user message', async () => {
  const rounds = fc.array(fc.record({ calls: fc.nat(3), size: fc.nat(400), asks: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  })
  await fc.assert(
    fc.asyncProperty(rounds, fc.integer({ min: 50, max: 1500 }), async (shape, limit) => {
      const messages = shape.flatMap(({ calls: count, size, asks }, index): Message[] => {
        const ids = Array.from({ length: count }, (_, call) => `c${index}_${call}`)
        const asked = asks || index === 0 ? [new UserMessage(`q${index}`)] : []
        const said = new AssistantMessage(
          'ok',
          ids.map((toolCallId) => ({ toolCallId, toolName: 'read', arguments: {} })),
        )
        if (count === 0) return [...asked, said]
        const results = ids.map((toolCallId) => ({ toolCallId, result: 'y'.repeat(size) }))
        return [...asked, said, new ToolResultMessage(results)]
      })
      const all = [
        pruneToolOutputs({ contextLimit: limit, outputReserve: 0, protectRecent: limit / 3 }),
        slidingWindow(6, { maxTokens: limit }),
        summarize(llm({ model: scripted(() => says('S')) }), { threshold: limit, keepRecent: 4 }),
      ]
      for (const middleware of [...all.map((one) => [one]), all]) {
        const model = scripted([says('done')])
        const state = start.withMessages(messages)
        const result = await agent({ model, middleware }).generate('now', state)
        const sent = model.requests[0]!.messages
        expect(sent[0]!.type).toBe('user')
        expect(sent.at(-1)!.text).toBe('now')
        const open = new Set<string>()
        for (const message of sent) {
          if (!isToolResultMessage(message)) expect([...open]).toEqual([])
          if (message.type === 'assistant')
            for (const call of message.toolCalls ?? []) open.add(call.toolCallId)
          if (isToolResultMessage(message))
            for (const one of message.results) expect(open.delete(one.toolCallId)).toBe(true)
        }
        expect(result.state.messages.slice(0, messages.length)).toEqual(messages)
      }
    }),
    { seed: 16, numRuns: process.env['SKEIN_DEEP'] ? 1000 : 60 },
  )
})

test('summarize: an input that is too long by itself does not bring back what was summarised', async () => {
  const estimate = ({ text }: Message): number =>
    text === 'big' ? 100 : text.length === 1 ? 30 : 1
  const model = scripted(() => says('Facts.'))
  const middleware = [summarize(llm({ model }), { threshold: 60, estimate })]
  const own = scripted([says('one'), says('two')])
  const coder = agent({ model: own, middleware })
  const state = start.withMessages(['a', 'b', 'c', 'd'].map((text) => new UserMessage(text)))
  const first = await coder.generate('now', state)
  await coder.generate('big', first.state)
  const summary = '[Previous conversation summary]\nFacts.'
  expect(own.requests.map(({ messages }) => messages.map(({ text }) => text))).toEqual([
    [summary, 'd', 'now'],
    [summary, 'd', 'now', 'one', 'big'],
  ])
  expect(model.requests).toHaveLength(1)
})

describe('onInference, the hook for one step', () => {
  const add: Tool = { ...read, name: 'add', run: () => 2 }

  test('other messages, tools, model and params; tools, model and params for that step only', async () => {
    const seen: InferenceRequest[] = []
    const cheap = scripted([calls('add', {})])
    const model = scripted([calls('read', {}), says('done')])
    const worker = agent({
      model,
      tools: [read, add],
      params: { temperature: 0 },
      strategy: {
        onInference(request) {
          seen.push(request)
          if (request.cycle !== 2) return undefined
          return {
            messages: [new UserMessage('short'), ...request.messages.slice(1)],
            tools: [add],
            model: cheap,
            params: { tool_choice: 'required' },
            metadata: { trimmed: true },
          }
        },
      },
    })
    const { state } = await worker.generate('long question', start)
    expect(seen.map(({ step, cycle, inputs }) => [step, cycle, inputs])).toEqual([
      [1, 1, 1],
      [2, 2, 0],
      [3, 3, 0],
    ])
    expect(cheap.requests[0]).toMatchObject({ params: { tool_choice: 'required' } })
    expect(cheap.requests[0]!.tools.map(({ name }) => name)).toEqual(['add'])
    expect(cheap.requests[0]!.messages[0]!.text).toBe('short')
    expect(model.requests[1]!.tools.map(({ name }) => name)).toEqual(['read', 'add'])
    expect(model.requests[1]!.params).toEqual({ temperature: 0 })
    expect(model.requests[1]!.messages[0]!.text).toBe('short') // stays for the run
    expect(seen[2]!.last!.messages[0]!.text).toBe('short')
    expect(state.messages[0]!.text).toBe('long question') // the state keeps everything
    expect(state.metadata['trimmed']).toBe(true)
  })

  test('middleware first, in order, then the strategy; an error names its hook', async () => {
    const order: string[] = []
    const note = (name: string) => ({ name, onInference: () => void order.push(name) })
    const model = scripted([says('a'), says('b')])
    await agent({
      model,
      middleware: [note('one'), note('two')],
      strategy: { onInference: () => void order.push('strategy') },
    }).generate('go', start)
    expect(order).toEqual(['one', 'two', 'strategy'])
    const broken: Middleware = {
      name: 'broken',
      onInference: () => {
        throw new Error('no')
      },
    }
    await expect(agent({ model, middleware: [broken] }).generate('go', start)).rejects.toThrow(
      /onInference of the middleware "broken"/,
    )
  })

  test('a history that a hook replaces afterwards is sent, not what was sent before', async () => {
    const model = scripted([calls('add', {}), says('done')])
    await agent({
      model,
      tools: [add],
      strategy: {
        onInference: ({ cycle, messages }) =>
          cycle === 1 ? { messages: [new UserMessage('short'), ...messages.slice(1)] } : undefined,
        onStepEnd: (step, { state }) =>
          step === 1 ? state.withContext([new UserMessage('from the hook')]) : undefined,
      },
    }).generate('long', start)
    expect(model.requests.map(({ messages }) => messages.map(({ text }) => text))).toEqual([
      ['short'],
      ['from the hook'],
    ])
  })

  test('messages that lost a result are completed before they are sent', async () => {
    const model = scripted([calls('read', {}), says('done')])
    await agent({
      model,
      tools: [read],
      strategy: {
        onInference: ({ messages }) => ({
          messages: messages.filter((one) => !isToolResultMessage(one)),
        }),
      },
    }).generate('go', start)
    expect(model.requests[1]!.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
    ])
  })

  test('signed reasoning of a vendor that does not bind it is sent back as it came, under every policy', async () => {
    const signed = { google: { signature: 'sig' } }
    for (const policy of Object.values(policies)) {
      const model = scripted((_, index) =>
        index < 20 ? [reasons('hm', { metadata: signed }), calls('read', {})] : says('done'),
      )
      await agent({ model, tools: [read], middleware: [policy()] }).generate('go', start)
      for (const { messages } of model.requests)
        for (const message of messages)
          if (message.type === 'assistant')
            expect(JSON.stringify(message.content)).toContain('"signature":"sig"')
    }
  })
})

test('`cycle` of the model’s middleware counts the inferences of the run', async () => {
  const cycles: number[] = []
  const model = scripted([calls('read', {}), calls('read', {}), says('done')])
  await agent({
    model,
    tools: [read],
    llmMiddleware: [{ name: 'count', onCycle: (_, cycle) => void cycles.push(cycle) }],
  }).generate('go', start)
  expect(cycles).toEqual([1, 2, 3])
})

describe('thinking and prompt caches over 300 rounds', () => {
  /** A vendor like Anthropic, whose answers think before they call. */
  function thinkingVendor() {
    return vendorServer((request: LLMRequest, index) => {
      const usage = {
        inputTokens: Math.ceil(JSON.stringify(request.messages).length / 4),
        outputTokens: 20,
      }
      return [
        reasons(`thought ${index}`), // the server signs it
        index >= ROUNDS ? says('done') : calls('read', { page: index }, { id: `call_${index}` }),
        stops(undefined, { usage }),
      ]
    })
  }
  interface Body {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  }
  const bodiesOf = (vendor: ReturnType<typeof thinkingVendor>): Body[] =>
    vendor.requests.map(({ body }) => body as unknown as Body)

  /** Counts the thinking blocks that are sent behind other messages than those they were written behind. */
  function looseThinking(bodies: readonly Body[]): number {
    const written = new Map<string, string>() // the request for which each block was the answer
    let loose = 0
    for (const [index, { messages }] of bodies.entries()) {
      messages.forEach(({ role, content }, at) => {
        if (role !== 'assistant' || !Array.isArray(content)) return
        for (const block of content as { type: string; thinking?: string }[]) {
          if (block.type !== 'thinking') continue
          if (written.get(block.thinking!) !== JSON.stringify(plain(messages.slice(0, at)))) loose++
        }
      })
      written.set(`thought ${index}`, JSON.stringify(plain(messages)))
    }
    return loose
  }

  /** Leaves out cache marks, which are no part of what the model reads. */
  const plain = (messages: Body['messages']): unknown =>
    JSON.parse(
      JSON.stringify(messages, (name, value: unknown) =>
        name === 'cache_control' ? undefined : value,
      ),
    )

  /** The share of requests that do not begin with the whole request before them. */
  function changedPrefixes(bodies: readonly Body[]): number {
    const changed = bodies.slice(1).filter(({ messages }, index) => {
      const before = bodies[index]!.messages
      return (
        JSON.stringify(plain(messages.slice(0, before.length))) !== JSON.stringify(plain(before))
      )
    })
    return changed.length / (bodies.length - 1)
  }

  const all: Readonly<Record<string, () => Middleware>> = {
    ...policies,
    'slidingWindow by messages': () => slidingWindow(50),
  }
  test.each(Object.entries(all))(
    '%s sends no thinking behind a changed prefix, and mostly the same prefix',
    async (_, policy) => {
      const vendor = thinkingVendor()
      const reader = agent({
        model: anthropic('claude-x'),
        config: { fetch: vendor.fetch, apiKey: 'k' },
        params: { max_tokens: 100 },
        tools: [{ ...read, run: () => 'x'.repeat(2000) }],
        middleware: [policy()],
      })
      const { state } = await reader.generate('Read the book.', start)
      const bodies = bodiesOf(vendor)
      expect(bodies.length).toBe(ROUNDS + 1)
      expect(looseThinking(bodies)).toBe(0)
      expect(changedPrefixes(bodies)).toBeLessThanOrEqual(0.1)
      expect(JSON.stringify(bodies.at(-1))).toContain('"thinking":')
      const kept = state.messages.filter(isAssistantMessage).flatMap(({ content }) => content)
      expect(kept.filter(({ type }) => type === 'reasoning').length).toBe(ROUNDS + 1)
    },
    60_000,
  )

  test.each(
    Object.entries(all).flatMap(([name, policy]) =>
      [0, 1].map((calls) => [name, calls, policy] as const),
    ),
  )(
    '%s over questions with %i calls, each a run of its own that begins with a stored state',
    async (_, callCount, policy) => {
      let left = 0
      const vendor = vendorServer((request: LLMRequest, index) => {
        const inputTokens = Math.ceil(JSON.stringify(request.messages).length / 4)
        const answer = left-- > 0 ? calls('read', {}, { id: `call_${index}` }) : says('x'.repeat(5000)) // prettier-ignore
        return [reasons(`thought ${index}`), answer, stops(undefined, { usage: { inputTokens } })]
      })
      const chat = agent({
        model: anthropic('claude-x'),
        config: { fetch: vendor.fetch, apiKey: 'k' },
        params: { max_tokens: 100 },
        tools: [{ ...read, run: () => 'x'.repeat(2000) }],
        middleware: [policy()],
      })
      let json = start.toJSON()
      for (let round = 0; round < ROUNDS; round++) {
        left = callCount
        const state = AgentState.fromJSON(JSON.parse(JSON.stringify(json)))
        json = (await chat.generate(`question ${round}`, state)).state.toJSON()
      }
      const bodies = bodiesOf(vendor)
      expect(bodies.length).toBe(ROUNDS * (callCount + 1))
      expect(looseThinking(bodies)).toBe(0)
      expect(changedPrefixes(bodies)).toBeLessThanOrEqual(0.1)
      expect(bodies.at(-1)!.messages.length).toBeLessThan(bodies.length)
      expect(JSON.stringify(bodies.slice(-3))).toContain('"thinking":')
    },
    60_000,
  )

  test.each<[string, () => Middleware]>([
    ['messages', () => slidingWindow(50)],
    ['tokens', () => slidingWindow(1000, { maxTokens: 3000 })],
  ])(
    'slidingWindow by %s keeps the prefix over 300 questions too, each a run of its own',
    async (_, policy) => {
      const vendor = vendorServer((request: LLMRequest) => {
        const inputTokens = Math.ceil(JSON.stringify(request.messages).length / 4)
        return [says('x'.repeat(100)), stops(undefined, { usage: { inputTokens } })]
      })
      const model = anthropic('claude-x')
      const config = { fetch: vendor.fetch, apiKey: 'k' }
      const chat = agent({ model, config, middleware: [policy()] })
      let state = start
      for (let round = 0; round < ROUNDS; round++)
        ({ state } = await chat.generate(`question ${round}`, state))
      const bodies = vendor.requests.map(({ body }) => body as unknown as Body)
      expect(changedPrefixes(bodies)).toBeLessThanOrEqual(0.1)
      expect(Math.max(...bodies.map(({ messages }) => messages.length))).toBeLessThanOrEqual(51)
    },
    60_000,
  )
})
