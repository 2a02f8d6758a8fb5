import { describe, expect, test } from 'vitest'
import { messageToJSON } from '@skein/ai'
import { calls, fails, reasons, says, scripted, stops, type ScriptStep } from '@skein/ai/testing'
import { defineModel, type Budget } from '@skein/runtime'
import { z } from 'zod'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const down = (options = {}) => fails({ message: 'overloaded', code: 'PROVIDER_ERROR', ...options })
const look = tool('look')

describe('a model that fails', () => {
  test('is asked again after a wait that doubles and is data, not a sleep', async () => {
    const agent = solo('retried', { script: [down(), down(), down(), says('At last.')] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    await it.send(id, 'hi')
    await it.idle()
    expect(requestsOf(agent)).toHaveLength(1)
    const { wakeAt } = await it.threads.get(id)
    expect(wakeAt).toBe(new Date(it.clock.now() + 1000).toISOString())
    for (const [wait, count] of [
      [999, 1],
      [1, 2],
      [1999, 2],
      [1, 3],
      [3999, 3],
      [1, 4],
    ] as const) {
      await it.advance(wait)
      expect(requestsOf(agent)).toHaveLength(count)
    }
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'At last.' })
    const failures = await it.events(id, 'step_failed')
    expect(failures.map(({ attempt, code }) => [attempt, code])).toEqual([
      [1, 'PROVIDER_ERROR'],
      [2, 'PROVIDER_ERROR'],
      [3, 'PROVIDER_ERROR'],
    ])
    // A failed try leaves nothing in the history.
    expect(linesOf(requestsOf(agent)[3])).toEqual(['user: hi'])
  })

  test('the wait that the vendor names is kept', async () => {
    const agent = solo('told', {
      script: [fails({ code: 'RATE_LIMITED', retryAfterMs: 30_000 }), says('Ok.')],
    })
    const it = await simulate({ agents: [agent] })
    const id = await it.create({ message: 'hi' })
    await it.idle()
    await it.advance(29_999)
    expect(requestsOf(agent)).toHaveLength(1)
    await it.advance(1)
    expect(requestsOf(agent)).toHaveLength(2)
    expect((await it.threads.settled(id)).text).toBe('Ok.')
  })

  test('a retry survives a restart, and a message that comes while it waits is in it', async () => {
    const agent = solo('again', { script: [down(), says('Ok.')] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create({ message: 'one' })
    await it.idle()
    const again = await it.restart()
    await again.send(id, 'two')
    await again.idle()
    expect(requestsOf(agent)).toHaveLength(1)
    await again.advance(1000)
    expect(linesOf(requestsOf(agent)[1])).toEqual(['user: one', 'user: two'])
  })

  test('after the last try the session fails, and the thread can continue', async () => {
    const agent = solo('lost', { script: [down(), down(), says('Back.')] })
    const it = await simulate({ agents: [agent], limits: { modelAttempts: 2 } })
    const id = await it.create()
    await it.send(id, 'hi')
    await it.idle()
    await it.advance(1000)
    const failed = await it.threads.settled(id)
    expect(failed).toMatchObject({ outcome: 'failed', reason: 'model_error' })
    expect(failed.text).toContain('overloaded')
    expect((await it.run(id, 'and now?')).text).toBe('Back.')
    expect(linesOf(requestsOf(agent)[2])).toEqual(['user: hi', 'user: and now?'])
  })

  test('an error that asking again cannot fix ends the session immediately', async () => {
    const agent = solo('refused', {
      script: [fails({ code: 'INVALID_REQUEST', message: 'bad request' }), says('Ok.')],
    })
    const it = await simulate({ agents: [agent] })
    const { id, outcome, reason, text } = await it.ask('hi')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'model_error' })
    expect(text).toContain('bad request')
    expect((await it.run(id, 'again')).outcome).toBe('completed')
  })

  test('an error that is none of ours fails the session too, and not the runtime', async () => {
    const agent = solo('odd', { script: [fails(new TypeError('boom')), says('Ok.')] })
    const it = await simulate({ agents: [agent], limits: { modelAttempts: 1 } })
    const { id, outcome, reason } = await it.ask('hi')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'model_error' })
    expect((await it.run(id, 'again')).text).toBe('Ok.')
  })

  test('its fallbacks are asked in order, immediately, and the last one is asked again', async () => {
    const asked: string[] = []
    const named = (name: string, steps: ScriptStep[]) =>
      defineModel({
        name,
        model: scripted(
          (request, index) => {
            asked.push(name)
            const step = steps[index] ?? steps.at(-1)!
            return typeof step === 'function' ? step(request, index) : step
          },
          { modelId: name },
        ),
      })
    const third = named('third', [down(), says('Third.')])
    const second = named('second', [fails({ code: 'AUTHENTICATION_FAILED' })])
    const first = { ...named('first', [down()]), fallbacks: [second, third] }
    const agent = solo('backed', { script: [], prompt: { model: first } })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    await it.send(id, 'hi')
    await it.idle()
    expect(asked).toEqual(['first', 'second', 'third'])
    await it.advance(4000)
    expect(asked).toEqual(['first', 'second', 'third', 'third'])
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Third.' })
    // The next step begins with the first again.
    await it.send(id, 'more')
    await it.idle()
    expect(asked.slice(4)).toEqual(['first', 'second', 'third'])
    const logs = await it.threads.logs(id)
    expect(logs.map(({ model, error }) => [model, error?.code])).toEqual([
      ['first', 'PROVIDER_ERROR'],
      ['second', 'AUTHENTICATION_FAILED'],
      ['third', 'PROVIDER_ERROR'],
      ['third', undefined],
      ['first', 'PROVIDER_ERROR'],
      ['second', 'AUTHENTICATION_FAILED'],
      ['third', undefined],
    ])
  })
})

describe('budgets', () => {
  const priced = (script: Parameters<typeof scripted>[0]) =>
    defineModel({ name: 'priced', model: scripted(script), inputPrice: 1, outputPrice: 10 })
  const hundred = stops(undefined, {
    usage: { inputTokens: 60, outputTokens: 40, totalTokens: 100 },
  })
  const spender = (budget?: Budget) =>
    solo(
      'spender',
      {
        script: [],
        tools: [look],
        prompt: {
          model: priced((_, index) =>
            index < 9 ? [calls('look'), hundred] : [says('x'), hundred],
          ),
        },
      },
      { ...(budget && { budget }) },
    )

  test.each<[string, Budget, number]>([
    ['tokens', { maxTokens: 250 }, 3],
    ['tokens, to the last one', { maxTokens: 200 }, 2],
    // 60 + 400 millionths of a dollar each.
    ['cost', { maxCostUsd: 0.000_9 }, 2],
  ])('%s of the agent', async (_, budget, requests) => {
    const it = await simulate({ agents: [spender(budget)] })
    const { id, outcome, reason } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'budget_exceeded' })
    expect(await it.threads.logs(id)).toHaveLength(requests)
  })

  test('a budget of the thread stands for the agent’s', async () => {
    const it = await simulate({ agents: [spender({ maxTokens: 100 })] })
    const id = await it.create({ budget: { maxTokens: 300 } })
    expect(await it.run(id, 'go')).toMatchObject({ reason: 'budget_exceeded' })
    expect(await it.threads.logs(id)).toHaveLength(3)
    expect(await it.threads.get(id)).toMatchObject({ tokens: 300 })
  })

  test('time', async () => {
    const late = tool('late', () => it.clock.advance(60_000))
    const agent = solo(
      'slow',
      { script: () => calls('late'), tools: [late] },
      { budget: { maxDurationMs: 150_000 } },
    )
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('go')).toMatchObject({ reason: 'budget_exceeded' })
    expect(requestsOf(agent)).toHaveLength(3)
  })

  test('a tree counts the children’s tokens', async () => {
    const child = pair('child', {
      a: { script: [[says('draft'), hundred]] },
      b: { script: [[calls('done'), hundred]], tools: [tool('done')], sessionStop: 'done' },
    })
    const agent = solo(
      'parent',
      { script: [[calls('child', { message: 'go' }), hundred], says('never')], tools: [child] },
      { budget: { tree: { maxTokens: 300 } } },
    )
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'failed', reason: 'budget_exceeded' })
    expect(requestsOf(agent)).toHaveLength(1)
  })
})

describe('logs and cost', () => {
  test('a request is put together again as the model got it', async () => {
    const agent = solo('logged', {
      script: [calls('look'), says('One.'), says('Two.'), says('Three.')],
      tools: [look],
      system: 'Be brief.',
      prompt: { providerOptions: { temperature: 0.5 } },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('first')
    await it.run(id, 'second')
    const [first, , , answer] = await it.threads.messages(id)
    await it.threads.updateMessage(id, first!.id, 'FIRST')
    await it.threads.deleteMessage(id, answer!.id)
    await it.run(id, 'third')
    const logs = await it.threads.logs(id)
    const sent = requestsOf(agent)
    expect(logs).toHaveLength(sent.length)
    for (const [index, { logId }] of logs.entries()) {
      const log = await it.threads.log(id, logId)
      const request = sent[index]!
      expect(log.messages).toEqual(JSON.parse(JSON.stringify(request.messages.map(messageToJSON))))
      expect(log.system).toBe(request.system)
      expect(log.params).toEqual(request.params)
      expect(log.tools.map(({ name }) => name)).toEqual(request.tools.map(({ name }) => name))
    }
    expect(linesOf(sent[3])[0]).toBe('user: FIRST')
  })

  test('what each answer cost is in its log, and summed up', async () => {
    const model = defineModel({
      name: 'priced',
      model: scripted(() => [
        says('x'),
        stops(undefined, { usage: { inputTokens: 1000, outputTokens: 100 } }),
      ]),
      inputPrice: 2,
      outputPrice: 10,
    })
    const it = await simulate({ agents: [solo('costs', { script: [], prompt: { model } })] })
    const { id } = await it.ask('hi')
    await it.run(id, 'again')
    const logs = await it.threads.logs(id)
    expect(logs.map(({ costUsd }) => costUsd)).toEqual([0.003, 0.003])
    const cost = await it.threads.cost(id)
    expect(cost).toMatchObject({ tokens: 2200, costUsd: 0.006 })
    expect(Object.values(cost.byModel)).toMatchObject([{ tokens: 2200, calls: 2 }])
  })

  test('the shape that was asked for is in the log', async () => {
    const agent = solo('shaped', {
      script: [says('{"score":9}')],
      prompt: { output: z.object({ score: z.number() }) },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('rate')
    const [log] = await it.threads.logs(id)
    expect(await it.threads.log(id, log!.logId)).toMatchObject({
      structure: { type: 'object', properties: { score: { type: 'number' } } },
    })
  })
})

describe('structured output', () => {
  const output = z.object({ score: z.number() })

  test('the answer is data', async () => {
    const agent = solo('rates', {
      script: [calls('look'), says('{"score":9}')],
      tools: [look],
      prompt: { output },
    })
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('rate')).toMatchObject({ outcome: 'completed', data: { score: 9 } })
    expect(requestsOf(agent)[0]!.structure).toBeDefined()
  })

  test('an answer of another shape goes to the model, which may fix it', async () => {
    const agent = solo('rates', {
      script: [says('{"score":"nine"}'), says('{"score":9}')],
      prompt: { output },
    })
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('rate')).toMatchObject({ outcome: 'completed', data: { score: 9 } })
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/shape that was asked for: score: /)
  })

  test('an answer that is no JSON is asked for again', async () => {
    const agent = solo('rates', { script: [says('nine'), says('{"score":9}')], prompt: { output } })
    const it = await simulate({ agents: [agent] })
    const id = await it.create({ message: 'rate' })
    await it.idle()
    await it.advance(1000)
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', data: { score: 9 } })
    // What the failed answer cost counts.
    const logs = await it.threads.logs(id)
    const tokens = logs.map(
      ({ usage }) => Number(usage?.['input_tokens']) + Number(usage?.['output_tokens']),
    )
    expect(tokens).toEqual([expect.any(Number), expect.any(Number)])
    expect(tokens[0]).toBeGreaterThan(0)
    expect((await it.threads.get(id)).tokens).toBe(tokens[0]! + tokens[1]!)
  })

  test('a model that never keeps to the shape fails the session', async () => {
    const agent = solo('rates', { script: () => says('{}'), prompt: { output } })
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('rate')).toMatchObject({ outcome: 'failed', reason: 'invalid_output' })
    expect(requestsOf(agent)).toHaveLength(3)
  })
})

describe('what a model sees', () => {
  test('without includeChat only the session’s own messages', async () => {
    const agent = solo('forgets', { script: () => says('x'), prompt: { includeChat: false } })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('one')
    await it.run(id, 'two')
    expect(linesOf(requestsOf(agent)[1])).toEqual(['user: two'])
  })

  test('without includePastTools no calls of earlier turns', async () => {
    const agent = solo('tidy', {
      script: [[says('I look.'), calls('look')], says('x'), calls('look'), says('y')],
      tools: [look],
      prompt: { includePastTools: false },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('one')
    await it.run(id, 'two')
    expect(linesOf(requestsOf(agent)[3])).toEqual([
      'user: one',
      'assistant: I look.',
      'assistant: x',
      'user: two',
      'assistant:  [look({})]',
      'tool_result: look = "ok"',
    ])
  })

  test('reasoning of its own, unless the prompt excludes it', async () => {
    for (const exclude of [false, true]) {
      const agent = solo('thinks', {
        script: [[reasons('Hm.'), says('One.')], says('Two.')],
        prompt: { reasoning: { exclude } },
      })
      const it = await simulate({ agents: [agent] })
      const { id } = await it.ask('hi')
      await it.run(id, 'more')
      const sent = requestsOf(agent)[1]!.messages[1]!
      const types = sent.type === 'assistant' ? sent.content.map(({ type }) => type) : []
      expect(types).toEqual(exclude ? ['text'] : ['reasoning', 'text'])
      expect((await it.threads.export(id)).includes('Hm.')).toBe(!exclude)
    }
  })

  test('old images as a line of text', async () => {
    const agent = solo('sees', { script: () => says('x'), prompt: { recentImageThreshold: 2 } })
    const it = await simulate({ agents: [agent] })
    const image = {
      type: 'image',
      mimeType: 'image/png',
      source: { type: 'base64', data: 'AAAA' },
    } as const
    const id = await it.create()
    await it.run(id, { text: 'look', content: [image] })
    await it.run(id, 'and?')
    const shown = requestsOf(agent).map(({ messages: [first] }) =>
      first?.type === 'user' ? first.content.map(({ type }) => type) : [],
    )
    expect(shown).toEqual([
      ['text', 'image'],
      ['text', 'text'],
    ])
  })

  test('a long conversation begins with a summary; the log keeps everything', async () => {
    const long = 'word '.repeat(100)
    const model = scripted((request, index) => {
      if (!request.tools.length && request.system === undefined) return says('They spoke of words.')
      return index % 2 === 0 ? [says(long), calls('look')] : says(long)
    })
    const agent = solo('long', {
      script: model,
      tools: [look],
      system: 'You.',
      prompt: { compaction: { maxTokens: 400, keepMessages: 2 } },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('one')
    for (const text of ['two', 'three', 'four']) await it.run(id, text)
    const compactions = await it.events(id, 'context_compacted')
    expect(compactions.length).toBeGreaterThan(0)
    const requests = model.requests.filter(({ system }) => system === 'You.')
    expect(linesOf(requests.at(-1))[0]).toContain('They spoke of words.')
    for (const { messages } of requests) {
      const called = messages.flatMap((one) =>
        one.type === 'assistant' ? (one.toolCalls ?? []) : [],
      )
      const settled = messages.flatMap((one) => (one.type === 'tool_result' ? one.results : []))
      expect(settled.map(({ toolCallId }) => toolCallId)).toEqual(
        called.map(({ toolCallId }) => toolCallId),
      )
    }
    const kept = (await it.threads.messages(id)).filter(({ message }) => message.type === 'user')
    expect(kept.map(({ message }) => message.type === 'user' && message.text)).toEqual([
      'one',
      'two',
      'three',
      'four',
    ])
  })
})
