/** What a call sends of its history and inputs, in every form that both may have. */
import { isDeepFrozen } from '@skein/base'
import {
  AssistantMessage,
  llm,
  messageToJSON,
  Thread,
  ToolResultMessage,
  UserMessage,
  type History,
  type InferenceInput,
  type LLMInstance,
  type Message,
  type Turn,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

type Given = readonly (History | InferenceInput)[]
const ways: readonly [string, (model: LLMInstance, given: Given) => Promise<Turn>][] = [
  ['generate', (model, given) => model.generate(...(given as InferenceInput[]))],
  ['stream', (model, given) => model.stream(...(given as InferenceInput[])).turn],
]

const call = { toolCallId: 'c', toolName: 't', arguments: { a: 1 } }
const past: readonly Message[] = [
  new UserMessage('first'),
  new AssistantMessage('second', [call]),
  new ToolResultMessage([{ toolCallId: 'c', toolName: 't', result: 1 }]),
  new AssistantMessage('third'),
]

/** One conversation in each form that a history may have. */
const forms: readonly [string, (messages: readonly Message[]) => History][] = [
  ['a list of messages', (messages) => [...messages]],
  ['a list of parsed JSON', (messages) => JSON.parse(JSON.stringify(messages)) as Message[]],
  ['a thread', (messages) => new Thread({ messages })],
  ['an object with messages', (messages) => ({ messages: [...messages] })],
]

const image = { type: 'image', source: { type: 'url', url: 'https://x.test/a' } } as const
const input = fc.oneof(
  fc.constantFrom('', 'text', 'more'),
  fc.constantFrom<InferenceInput>(
    { type: 'text', text: 'block' },
    { ...image, mimeType: 'image/png' },
  ),
  fc
    .constantFrom('user', 'assistant')
    .map((type) => (type === 'user' ? new UserMessage('said') : new AssistantMessage('answered'))),
)

/** A flat, readable form of messages: whose turn it is, and each block in order. */
const shown = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) =>
    message.type === 'tool_result'
      ? [`tool_result ${JSON.stringify(message.results)}`]
      : message.content.map((block) => `${message.type} ${JSON.stringify(block)}`),
  )

/** The same for what the caller gave. */
const meant = (inputs: readonly InferenceInput[]): string[] =>
  inputs.flatMap((one) => {
    if (typeof one === 'string') return [`user ${JSON.stringify({ type: 'text', text: one })}`]
    const isMessage = one instanceof UserMessage || one instanceof AssistantMessage
    return isMessage ? shown([one]) : [`user ${JSON.stringify(one)}`]
  })

describe.each(ways)('%s', (_way, ask) => {
  test('UPP-046 UPP-047 UPP-048 any history, then any inputs, are sent in that order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...forms),
        fc.nat({ max: past.length }),
        fc.array(input, { minLength: 1, maxLength: 5 }),
        async ([, form], length, inputs) => {
          const model = scripted([says('done')])
          const history = form(past.slice(0, length))
          const turn = await ask(llm({ model }), [history, ...inputs])
          const sent = model.requests[0]!.messages
          expect(shown(sent)).toEqual([...shown(past.slice(0, length)), ...meant(inputs)])
          expect(shown(turn.messages)).toEqual([
            ...meant(inputs),
            'assistant {"type":"text","text":"done"}',
          ])
        },
      ),
      { numRuns: 60 },
    )
  })

  test('UPP-045 UPP-046 the same without a history', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(input, { minLength: 1, maxLength: 5 }), async (inputs) => {
        const model = scripted([says('done')])
        await ask(llm({ model }), inputs)
        expect(shown(model.requests[0]!.messages)).toEqual(meant(inputs))
      }),
      { numRuns: 30 },
    )
  })

  test.each(forms)('UPP-047 UPP-048 %s stays as the caller made it', async (_name, form) => {
    const history = form(past)
    const list = Array.isArray(history) ? history : (history as { messages: Message[] }).messages
    // Parsed messages may lack the id and the time; the caller's objects do not get them.
    const plain = list.map((message) => {
      if (isDeepFrozen(message)) return message
      const { id: _id, timestamp: _time, ...rest } = message as Message
      return rest as Message
    })
    const given = history instanceof Thread ? history : plain
    const before = JSON.stringify(given)
    const length = list.length
    await ask(llm({ model: scripted([says('done')]) }), [given as History, 'more', 'and more'])
    expect(JSON.stringify(given)).toBe(before)
    expect(list).toHaveLength(length)
    if (!(given instanceof Thread)) expect(Object.isFrozen(given)).toBe(false)
  })

  test('UPP-045 a message of the input keeps its id, time and metadata, parsed or not', async () => {
    const metadata = { other: { note: 1 } }
    const message = new UserMessage('hi', { id: 'mine', timestamp: new Date(7), metadata })
    // A plain object may still have its Date.
    for (const given of [message, messageToJSON(message), { ...message, text: undefined }]) {
      const model = scripted([says('done')])
      const { text: _, ...plain } = given as Partial<UserMessage>
      const turn = await ask(llm({ model }), [given === message ? message : (plain as Message)])
      for (const sent of [model.requests[0]!.messages[0]!, turn.messages[0]!])
        expect(messageToJSON(sent)).toEqual(messageToJSON(message))
    }
  })

  test('UPP-055 UPP-077 every inference is sent all that came before it', async () => {
    const rounds = 5
    const model = scripted([
      ...Array.from({ length: rounds }, (_, n) => calls('t', { n })),
      says('done'),
    ])
    const tool = { name: 't', description: '', parameters: {}, run: ({ n }: { n: number }) => n }
    const turn = await ask(llm({ model, tools: [tool] }), [past, 'go'])
    const all = [...past, ...turn.messages]
    expect(turn.messages).toHaveLength(1 + 2 * rounds + 1)
    expect(model.requests.map(({ messages }) => messages)).toEqual(
      Array.from({ length: rounds + 1 }, (_, n) => all.slice(0, past.length + 1 + 2 * n)),
    )
  })
})
