/** Whatever an agent goes through, what it sends next is a conversation that strict vendors accept. */
import { agent, AgentState, type AgentOptions, type ExecutionStrategy } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  AssistantMessage,
  defer,
  isAssistantMessage,
  isToolResultMessage,
  type Message,
  type ModelReference,
  type Tool,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import {
  calls,
  says,
  scripted,
  vendorServer,
  type ScriptFunction,
  type VendorServer,
} from '@skein/ai/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { add } from './support/tools.ts'

const vendors: [string, ModelReference][] = [
  ['anthropic', anthropic('claude-x')],
  ['openai responses', openai('gpt-x')],
  ['openai chat', openai('gpt-x', { api: 'chat' })],
  ['google', google('gemini-x')],
  ['ollama', ollama('llama-x')],
]
const strategies: [string, () => ExecutionStrategy][] = [
  ['loop', loop],
  ['react', react],
  ['plan', plan],
]
const start = AgentState.initial()
const ask: Tool = {
  name: 'ask',
  description: 'Asks.',
  parameters: { type: 'object', properties: {} },
  run: () => defer({ kind: 'input', request: 'well?' }),
}

/** Plans one step, then makes the calls of the plan, then speaks. */
function script(moves: readonly ReturnType<ScriptFunction>[]): ScriptFunction {
  let next = 0
  return ({ structure, tools }) => {
    if (structure) return says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}')
    if (tools.length === 0) return says('thinking')
    return moves[next++] ?? says('done')
  }
}

describe.each(vendors)('%s', (_, model) => {
  const make = (vendor: VendorServer, more: Partial<AgentOptions>) =>
    agent({ model, config: { fetch: vendor.fetch, apiKey: 'k' }, tools: [add, ask], ...more })
  const both = [calls('add', { a: 1, b: 1 }, { id: 'call_a' }), calls('ask', {}, { id: 'call_b' })]

  test.each(strategies)(
    '%s: tools, a second call, an interrupt closed or answered',
    async (_name, execution) => {
      const vendor = vendorServer(script([calls('add', { a: 1, b: 1 }), says('two'), both]))
      const worker = make(vendor, { execution: execution() })
      const first = await worker.generate('go', start)
      expect(first.stopReason).toBe('complete')
      const paused = await worker.generate('again', first.state)
      expect(paused.stopReason).toBe('interrupted')
      const closed = await worker.generate('never mind', paused.state)
      expect(closed.stopReason).toBe('complete')
      const answered = await worker.resume(paused.state, {
        [paused.interrupts![0]!.id]: { type: 'result', value: 4 },
      })
      expect(answered.stopReason).toBe('complete')
      await worker.stream('and streamed', answered.state).result
      expect(vendor.requests.length).toBeGreaterThan(5)
    },
  )

  test('an abort in the middle of tools, then another try', async () => {
    const slow: Tool = { ...add, run: () => new Promise(() => {}) }
    const vendor = vendorServer(script([calls('add', { a: 1, b: 1 })]))
    const worker = make(vendor, { tools: [slow] })
    const stream = worker.stream('go', start)
    for await (const { upp } of stream) if (upp?.type === 'tool_execution_start') break
    await stream.result.catch(() => {})
    const { turn } = await worker.generate('again', stream.state)
    expect(turn.response.text).toBe('done')
  })

  test('a history cut anywhere', async () => {
    const vendor = vendorServer(
      script([
        calls('add', { a: 1, b: 1 }),
        [calls('add', { a: 2, b: 2 }), calls('add', { a: 3, b: 3 })],
      ]),
    )
    const worker = make(vendor, {})
    const { state } = await worker.generate('go', start)
    for (let from = 0; from < state.messages.length; from++)
      for (let to = from; to <= state.messages.length; to++) {
        const part = start
          .withMessage(new UserMessage('first'))
          .withMessages(state.messages.slice(from, to))
        const { turn } = await worker.generate('again', part)
        expect(turn.response.text).toBe('done')
      }
  })
})

test('a hook that drops a result in the middle of a long history is repaired before the next inference', async () => {
  const sent: (readonly Message[])[] = []
  const model = scripted((request, index) => {
    sent.push(request.messages)
    return index < 4 ? calls('add', { a: 1, b: index }, { id: `call_${index}` }) : says('done')
  })
  const worker = agent({
    model,
    tools: [add],
    strategy: {
      onStepEnd: (step, { state }) =>
        step === 3 ? state.withContext(state.messages.filter((_, at) => at !== 2)) : undefined,
    },
  })
  const { state } = await worker.generate('go', start)
  for (const messages of [...sent, state.messages]) {
    const called = messages.flatMap((one) => (isAssistantMessage(one) ? (one.toolCalls ?? []) : []))
    const answered = messages.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
    expect(answered.map(({ toolCallId }) => toolCallId)).toEqual(
      called.map(({ toolCallId }) => toolCallId),
    )
  }
  expect(sent[3]![2]).toMatchObject({ results: [{ toolCallId: 'call_0', isError: true }] })
})

/**
 * What was kept of an exchange: its call, the results in one or two messages, one from elsewhere. The messages
 * may be plain data, as from a database, without the getters of their classes.
 */
const exchanges = fc.array(
  fc.record({
    callCount: fc.nat(3),
    hasCalls: fc.boolean(),
    isPlain: fc.boolean(),
    results: fc.array(fc.array(fc.nat(3), { maxLength: 3 }), { maxLength: 2 }),
  }),
  { maxLength: 6 },
)

test('UAP-090 UAP-155 whatever is left of a history, each call sent has one result, and what is kept stays as it was', async () => {
  await fc.assert(
    fc.asyncProperty(exchanges, async (parts) => {
      const history: Message[] = parts.flatMap(
        ({ callCount, hasCalls, isPlain, results }, part) => {
          const id = (index: number): string => `${part}.${index}`
          const toolCalls = Array.from({ length: callCount }, (_, index) => ({
            toolCallId: id(index),
            toolName: 'add',
            arguments: {},
          }))
          const answers = results.map((indexes, message) => {
            const list = indexes.map((index) => ({ toolCallId: id(index), result: `${message}` }))
            return new ToolResultMessage(list, { metadata: { own: { part, message } } })
          })
          const asked = hasCalls ? [new AssistantMessage('calls', toolCalls)] : []
          const messages: Message[] = [...asked, ...answers, new UserMessage(`${part}`)]
          return isPlain ? messages.map((message) => ({ ...message }) as Message) : messages
        },
      )
      const model = scripted(() => says('ok'))
      await agent({ model, tools: [add] }).generate('go', start.withContext(history))
      const sent = model.requests[0]!.messages
      const others = (messages: readonly Message[]) =>
        messages.filter((one) => !isToolResultMessage(one))
      expect(others(sent).slice(0, -1)).toEqual(others(history))
      const open = new Set<string>()
      for (const message of sent) {
        if (!isToolResultMessage(message)) expect([...open]).toEqual([])
        if (isAssistantMessage(message))
          for (const { toolCallId } of message.toolCalls ?? []) open.add(toolCallId)
        if (!isToolResultMessage(message)) continue
        const given = history.find(({ id }) => id === message.id) as ToolResultMessage | undefined
        for (const result of message.results) {
          expect(open.delete(result.toolCallId)).toBe(true)
          if (given) expect(given.results).toContainEqual(result)
          else expect(result.isError).toBe(true)
        }
        expect([message.metadata, given && message.timestamp]).toEqual([
          given?.metadata,
          given?.timestamp,
        ])
      }
      // A result is replaced only if none was there.
      const known = sent.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
      const called = new Set(known.map(({ toolCallId }) => toolCallId))
      const had = history.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
      for (const { toolCallId, isError } of known)
        expect(isError === true).toBe(!had.some((one) => one.toolCallId === toolCallId))
      expect(called.size).toBe(known.length)
    }),
    { seed: 155, numRuns: process.env['SKEIN_DEEP'] ? 2000 : 150 },
  )
})
