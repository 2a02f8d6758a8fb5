import { agent, AgentState, type Middleware } from '@skein/agents'
import { pruneToolOutputs, slidingWindow, summarize } from '@skein/agents/middleware'
import { scriptedAgent } from '@skein/agents/testing'
import {
  AssistantMessage,
  isToolResultMessage,
  llm,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const CLEARED = '[Output cleared - context limit]'
const output = 'x'.repeat(400) // a hundred tokens

function exchange(index: number, callCount = 2): Message[] {
  const ids = Array.from({ length: callCount }, (_, call) => `call_${index}_${call}`)
  return [
    new UserMessage(`question ${index}`),
    new AssistantMessage(
      '',
      ids.map((toolCallId) => ({ toolCallId, toolName: 'read', arguments: {} })),
    ),
    new ToolResultMessage(
      ids.map((toolCallId) => ({
        toolCallId,
        toolName: 'read',
        result: `${toolCallId} ${output}`,
      })),
      { metadata: { own: { kept: true } } },
    ),
    new AssistantMessage(`answer ${index}`),
  ]
}

const history = (count: number): AgentState =>
  AgentState.initial().withMessages(
    Array.from({ length: count }, (_, index) => exchange(index)).flat(),
  )

/** What the model is sent for a new question. */
async function sent(state: AgentState, ...middleware: Middleware[]): Promise<readonly Message[]> {
  const coder = scriptedAgent([says('done')], { middleware })
  await coder.generate('now', state)
  return coder.model.requests[0]!.messages
}

/** What the middleware makes of a history, without the new question. */
async function kept(state: AgentState, ...middleware: Middleware[]): Promise<readonly Message[]> {
  return (await sent(state, ...middleware)).slice(0, -1)
}

function everyCallIsAnswered(messages: readonly Message[]): void {
  const calls = messages.flatMap((one) => (one.type === 'assistant' ? (one.toolCalls ?? []) : []))
  const results = messages.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
  expect(results.map(({ toolCallId }) => toolCallId)).toEqual(
    calls.map(({ toolCallId }) => toolCallId),
  )
}

/** The three patterns of UAP §6.2, as written there. */
const estimate = (message: Message): number => JSON.stringify(message).length / 4
const total = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + estimate(message), 0)

const specPruneToolOutputs: Middleware = {
  name: 'prune-tool-outputs',
  before: async (context) => {
    const usable = 2000 - 160
    if (total(context.state.messages) <= usable) return context
    const messages = [...context.state.messages]
    let recent = 0
    for (let index = messages.length - 1; index >= 0; index--) {
      const message = messages[index]!
      recent += estimate(message)
      if (recent > 400 && isToolResultMessage(message))
        messages[index] = new ToolResultMessage([
          { toolCallId: message.results[0]!.toolCallId, result: CLEARED },
        ])
    }
    return { ...context, state: context.state.withContext(messages) }
  },
}

const specSlidingWindow: Middleware = {
  name: 'sliding-window',
  before: async (context) => {
    const { messages } = context.state
    if (messages.length <= 6) return context
    return { ...context, state: context.state.withContext(messages.slice(-6)) }
  },
}

const specSummarize = {
  name: 'summarize-context',
  init: (summarizer: {
    generate(prompt: string): Promise<{ response: { text: string } }>
  }): Middleware => ({
    name: 'summarize-context',
    before: async (context) => {
      const { messages } = context.state
      if (total(messages) <= 1500) return context
      const [old, recent] = [messages.slice(0, -4), messages.slice(-4)]
      const summary = await summarizer.generate(
        `Summarize this conversation, preserving key facts:\n${old.map((m) => JSON.stringify(m)).join('\n')}`,
      )
      return {
        ...context,
        state: context.state.withContext([
          new UserMessage(`[Previous conversation summary]\n${summary.response.text}`),
          ...recent,
        ]),
      }
    },
  }),
}

describe('UAP-090 the patterns as the specification writes them', () => {
  test('UAP-090 pruning: the next request has placeholders, every call is still answered', async () => {
    const messages = await sent(history(8), specPruneToolOutputs)
    everyCallIsAnswered(messages)
    const results = messages.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
    expect(results[0]?.result).toBe(CLEARED)
    expect(results.at(-1)?.result).toContain(output)
  })

  test('UAP-090 sliding window: a cut between a call and its result is fixed', async () => {
    for (const extra of [0, 1, 2, 3]) {
      const state = history(4).withMessages(exchange(9).slice(0, extra === 3 ? 0 : 1))
      const messages = await sent(state, specSlidingWindow)
      everyCallIsAnswered(messages)
      expect(messages.at(-1)?.text).toBe('now')
    }
  })

  test('UAP-090 summary: old messages are gone, the summary and the recent ones are sent', async () => {
    const model = scripted([says('They read files.')])
    const messages = await sent(history(6), specSummarize.init(llm({ model })))
    expect(messages[0]?.text).toBe('[Previous conversation summary]\nThey read files.')
    expect(messages.length).toBe(1 + 4 + 1)
    expect(model.requests[0]?.messages[0]?.text).toContain('question 0')
  })

  test('UAP-090 all three in a row', async () => {
    const summarizer = llm({ model: scripted([says('Short.')]) })
    const messages = await sent(
      history(12),
      pruneToolOutputs({ contextLimit: 2000, outputReserve: 160, protectRecent: 400 }),
      slidingWindow(20),
      summarize(summarizer, { threshold: 700, keepRecent: 4 }),
    )
    everyCallIsAnswered(messages)
    expect(messages.map(({ type }) => type)).toEqual([
      'user',
      'user',
      'assistant',
      'tool_result',
      'assistant',
      'user',
    ])
  })
})

describe('UAP-090 pruneToolOutputs', () => {
  const prune = pruneToolOutputs({ contextLimit: 2000, outputReserve: 160, protectRecent: 900 })

  test('UAP-090 a history that fits is left alone', async () => {
    const state = history(2)
    expect(await sent(state, prune)).toEqual([...state.messages, expect.anything()])
    const large = history(8)
    expect((await sent(large, pruneToolOutputs())).slice(0, -1)).toEqual(large.messages)
  })

  test('UAP-090 old outputs are cleared, all of them, with their ids; recent ones and all else stay', async () => {
    const state = history(8)
    const messages = await sent(state, prune)
    everyCallIsAnswered(messages)
    expect(messages.map(({ id }) => id).slice(0, -1)).toEqual(state.messages.map(({ id }) => id))
    const results = messages.filter(isToolResultMessage)
    const isCleared = results.map((one) => one.results.every(({ result }) => result === CLEARED))
    expect(isCleared).toEqual([true, true, true, true, true, true, false, false])
    expect(results[0]).toMatchObject({
      metadata: { own: { kept: true } },
      results: [{ toolName: 'read' }, {}],
    })
    messages.forEach((message, index) => {
      if (!isToolResultMessage(message) && index < 32) expect(message).toBe(state.messages[index])
    })
  })

  test('UAP-090 what is cleared already stays the same object, so that nothing is sent anew', async () => {
    const state = history(8)
    const [first, again] = [await sent(state, prune), await sent(state, prune)]
    const cleared = first.filter(isToolResultMessage)[0]
    expect(cleared?.results[0]?.result).toBe(CLEARED)
    expect(again.filter(isToolResultMessage)[0]).toBe(cleared)
    expect(state.messages.filter(isToolResultMessage)[0]).not.toBe(cleared)
  })

  test('UAP-091 how tokens are counted is the developer’s choice', async () => {
    const all = pruneToolOutputs({
      contextLimit: 10,
      outputReserve: 0,
      protectRecent: 0,
      estimate: () => 1,
    })
    const none = pruneToolOutputs({ contextLimit: 1e9, estimate: () => 1 })
    const count = (messages: readonly Message[]): number =>
      messages.filter((one) => isToolResultMessage(one) && one.results[0]?.result === CLEARED)
        .length
    expect(count(await sent(history(5), all))).toBe(5)
    expect(count(await sent(history(5), none))).toBe(0)
  })
})

test('UAP-091 no tokenizer is among the dependencies, and no model limit in the engine', () => {
  const url = new URL('../../packages/agents/package.json', import.meta.url)
  const manifest = JSON.parse(readFileSync(url, 'utf8')) as Record<string, object>
  expect(Object.keys(manifest['dependencies'] ?? {})).toEqual(['@skein/base'])
  expect(Object.keys(manifest['peerDependencies'] ?? {}).toSorted()).toEqual([
    '@modelcontextprotocol/sdk',
    '@skein/ai',
  ])
})

describe('UAP-090 slidingWindow', () => {
  const runs = process.env['SKEIN_DEEP'] ? 2000 : 150
  const shape = fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 12 })

  test('UAP-090 whatever the history, what is sent is whole, starts with a user and ends with the newest', async () => {
    await fc.assert(
      fc.asyncProperty(shape, fc.integer({ min: 1, max: 12 }), async (parts, size) => {
        // Long runs of tools within one question too: not every exchange has its own.
        const messages = parts.flatMap(([callCount, hasQuestion], index) => {
          const [question, ...rest] = exchange(index, callCount + 1)
          return hasQuestion || index === 0 ? [question!, ...rest] : rest.slice(0, 2)
        })
        const state = AgentState.initial().withMessages(messages)
        const window = await kept(state, slidingWindow(size))
        everyCallIsAnswered(window)
        if (messages.length <= size) expect(window).toEqual(messages)
        else {
          expect(window[0]?.type).toBe('user')
          expect(window.at(-1)).toBe(messages.at(-1))
          // The last group may be larger than the window, and the question comes before it.
          expect(window.length).toBeLessThanOrEqual(Math.max(size, 3))
        }
      }),
      { seed: 90, numRuns: runs },
    )
  })

  test('UAP-090 as much as fits is kept', async () => {
    const state = history(5)
    expect(await kept(state, slidingWindow(9))).toEqual(state.messages.slice(-8))
    expect(() => slidingWindow(0)).toThrow(/whole number from 1/)
  })

  test('UAP-090 calls that wait for an answer survive the window', async () => {
    const call = { toolCallId: 'open', toolName: 'pay', arguments: {} }
    const pay = {
      name: 'pay',
      description: 'Pays.',
      parameters: { type: 'object' },
      run: () => 'paid',
    }
    const state = history(3).withMessages([
      new UserMessage('pay'),
      new AssistantMessage('', [call]),
    ])
    const model = scripted([says('done')])
    const coder = agent({ model, tools: [pay], middleware: [slidingWindow(2)] })
    const { turn } = await coder.resume(state)
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual(['paid'])
    expect(model.requests[0]?.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
    ])
  })
})

describe('UAP-090 summarize', () => {
  test('UAP-090 below the threshold no one is asked; the summary is marked as made up', async () => {
    const model = scripted([says('Facts.')])
    const middleware = summarize(llm({ model }), { threshold: 1000, keepRecent: 3 })
    await sent(history(1), middleware)
    expect(model.requests.length).toBe(0)
    const messages = await sent(history(6), middleware)
    expect(model.requests.length).toBe(1)
    expect(messages[0]).toMatchObject({ metadata: { uap: { synthetic: true, phase: 'summary' } } })
    everyCallIsAnswered(messages)
    expect(model.requests[0]?.messages[0]?.text.split('\n')[0]).toBe(
      'Summarize this conversation, preserving key facts:',
    )
  })

  test('UAP-090 the summary covers exactly the messages before the recent ones, and says up to which', async () => {
    const model = scripted(() => says('Facts.'))
    const state = AgentState.initial().withMessages(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((text) => new UserMessage(text)),
    )
    const estimate = () => 10
    const middleware = summarize(llm({ model }), { threshold: 60, keepRecent: 2, estimate })
    const coder = scriptedAgent([says('one'), says('two')], { middleware: [middleware] })
    // Six messages of ten tokens are at the threshold; the input makes them seven.
    const first = await coder.generate('now', state)
    expect(coder.model.requests[0]!.messages.map(({ text }) => text)).toEqual([
      '[Previous conversation summary]\nFacts.',
      'e',
      'f',
      'now',
    ])
    expect(model.requests[0]!.messages[0]!.text.split('\n').slice(1)).toEqual(
      ['a', 'b', 'c', 'd'].map((text) => `{"type":"user","content":[{"type":"text","text":"${text}"}]}`), // prettier-ignore
    )
    const upTo = state.messages[3]!.id
    expect(first.state.metadata['contextSummary']).toEqual({ upTo, text: 'Facts.' })
    expect(
      first.state.messages
        .map(({ text }) => text)
        .slice(0, 6)
        .join(''),
    ).toBe('abcdef')
    // The next run continues from the summary: it has summary, e, f, now, one, then.
    await coder.generate('then', first.state)
    expect(model.requests.length).toBe(1)
    expect(coder.model.requests[1]!.messages.map(({ text }) => text)).toEqual([
      '[Previous conversation summary]\nFacts.',
      'e',
      'f',
      'now',
      'one',
      'then',
    ])
  })

  test('UAP-090 a summary of a summary covers the same messages as that one', async () => {
    const texts = ['First.', 'Second.']
    const model = scripted((_, index) => says(texts[index]!))
    const messages = ['a', 'b'].map((text) => new UserMessage(text))
    const estimate = ({ text }: Message) => (text.includes('summary') ? 100 : 10)
    const middleware = summarize(llm({ model }), { threshold: 25, keepRecent: 1, estimate })
    const coder = scriptedAgent([says('one'), says('two')], { middleware: [middleware] })
    const first = await coder.generate('now', AgentState.initial().withMessages(messages))
    expect(first.state.metadata['contextSummary']).toEqual({
      upTo: messages[0]!.id,
      text: 'First.',
    })
    const cut = first.state.withContext(messages)
    const second = await coder.generate('then', cut)
    expect(second.state.metadata['contextSummary']).toEqual({
      upTo: messages[0]!.id,
      text: 'Second.',
    })
  })

  test('UAP-090 the cut never parts a call from its results, at any size', async () => {
    for (let keepRecent = 1; keepRecent < 12; keepRecent++) {
      const summarizer = llm({ model: scripted([says('S')]) })
      const messages = await kept(history(4), summarize(summarizer, { threshold: 0, keepRecent }))
      expect(messages.length).toBeLessThanOrEqual(Math.max(2, keepRecent + 1))
      everyCallIsAnswered(messages)
      expect(messages[0]?.text).toContain('S')
    }
  })
})
