import { sequentialIds, systemClock } from '@skein/base'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { messageFromJSON, messageToJSON } from '../contract/message-json.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../contract/message.ts'
import type { LLMRequest } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import { anthropicMessages } from './anthropic-messages/wire.ts'
import { encodeHistory } from './encode-history.ts'
import { googleGenerate } from './google-generate/wire.ts'
import { ollamaChat } from './ollama-chat/wire.ts'
import { chatDialect } from './openai-chat/dialect.ts'
import { openaiChat } from './openai-chat/wire.ts'
import { responsesDialect } from './openai-responses/types.ts'
import { openaiResponses } from './openai-responses/wire.ts'
import type { Wire } from './wire.ts'

const wires = [
  [openaiChat, chatDialect],
  [openaiResponses, responsesDialect],
  [anthropicMessages, {}],
  [googleGenerate, {}],
  [ollamaChat, {}],
] as unknown as readonly (readonly [Wire, object])[]

const dialects = new Map(wires)

function requestOf(messages: readonly Message[]): LLMRequest {
  return {
    messages,
    system: 'S',
    params: {},
    tools: [],
    config: {},
    signal: new AbortController().signal,
    clock: systemClock,
    ids: sequentialIds('x'),
  }
}

function encode(wire: Wire, messages: readonly Message[]): { body: string; warnings: unknown } {
  const request = requestOf(messages)
  const target = { provider: 'v', modelId: 'm', dialect: dialects.get(wire) }
  const { body, warnings } = wire.encodeRequest(request, target, 'stream')
  return { body, warnings }
}

/** The same conversation in objects that no cache has seen. */
const unseen = (messages: readonly Message[]): Message[] =>
  messages.map((message) => messageFromJSON(JSON.parse(JSON.stringify(messageToJSON(message)))))

const call = (id: string) => ({ toolCallId: id, toolName: 't', arguments: { id } })
const step = fc.constantFrom('say', 'round', 'open', 'orphan', 'back', 'edit', 'again')

test('a growing, branching, edited conversation is written as if it were sent for the first time', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), (steps) => {
      let messages: Message[] = []
      let count = 0
      for (const kind of steps) {
        const id = `c${(count += 1)}`
        if (kind === 'say') messages.push(new UserMessage(`u${id}`), new AssistantMessage(`a${id}`))
        if (kind === 'round' || kind === 'open')
          messages.push(new AssistantMessage(`t${id}`, [call(id)]))
        if (kind === 'round' || kind === 'orphan')
          messages.push(new ToolResultMessage([{ toolCallId: id, toolName: 't', result: id }]))
        if (kind === 'back') messages = messages.slice(0, Math.floor(messages.length / 2))
        if (kind === 'edit' && messages.length > 0) messages[0] = new UserMessage(`e${id}`)
        for (const [wire] of wires)
          expect(encode(wire, messages)).toEqual(encode(wire, unseen(messages)))
      }
    }),
    { seed: 11, numRuns: process.env['SKEIN_DEEP'] ? 3_000 : 60 },
  )
})

test('a round encodes only what is new', () => {
  const encodeAll = vi.fn((list: readonly Message[]) => list.map(({ id }) => JSON.stringify(id)))
  const messages: Message[] = [new UserMessage('u', { id: '0' })]
  const written: number[] = []
  for (let round = 1; round <= 50; round += 1) {
    const text = encodeHistory([...messages], 'key', encodeAll, [])
    expect(JSON.parse(`[${textOf(text)}]`)).toEqual(messages.map(({ id }) => id))
    written.push(encodeAll.mock.lastCall![0].length)
    const id = String(round)
    messages.push(new AssistantMessage('', [call(id)], { id: `a${id}` }))
    messages.push(new ToolResultMessage([{ toolCallId: id, result: 1 }], { id: `r${id}` }))
  }
  expect(written).toEqual([1, ...Array.from({ length: 49 }, () => 2)])
})

/** The text of a list that may be bytes. */
const textOf = (list: string | Uint8Array): string =>
  typeof list === 'string' ? list : new TextDecoder().decode(list)

test('a long conversation is kept as bytes, which later rounds and branches leave as they are', () => {
  const encodeAll = (list: readonly Message[]): string[] =>
    list.map((message) => JSON.stringify(message.text))
  const long = 'wörd 🧵 '.repeat(1500)
  const messages: Message[] = []
  const given: { bytes: Uint8Array; copy: Uint8Array; messages: Message[] }[] = []
  for (let round = 0; round < 40; round++) {
    // Every tenth round goes back, as an edited conversation does.
    if (round % 10 === 9) messages.splice(-3)
    messages.push(new UserMessage(`${round} ${long.slice(0, (round * 977) % long.length)}`))
    const list = encodeHistory([...messages], 'long', encodeAll, [])
    expect(JSON.parse(`[${textOf(list)}]`)).toEqual(messages.map(({ text }) => text))
    if (typeof list !== 'string')
      given.push({ bytes: list, copy: list.slice(), messages: [...messages] })
  }
  expect(given.length).toBeGreaterThan(20)
  for (const { bytes, copy } of given) expect(Buffer.compare(bytes, copy)).toBe(0)
  // A message that may still change is not written into the kept bytes.
  const draft = { ...new UserMessage('draft'), text: 'draft' } as unknown as Message
  const drafted = encodeHistory([...messages, draft], 'long', encodeAll, [])
  expect(textOf(drafted).endsWith(',"draft"')).toBe(true)
  const next = encodeHistory([...messages, new UserMessage('next')], 'long', encodeAll, [])
  expect(textOf(next).endsWith(',"next"')).toBe(true)
  expect(textOf(drafted).endsWith(',"draft"')).toBe(true)
})

// Google joins entries of the history, so that is always text.
const inPieces = wires.map(([wire]) => wire).filter(({ name }) => name !== 'google-generate')

test.each(inPieces)('a long request of $name has a body that equals its pieces', (wire) => {
  const messages = Array.from({ length: 40 }, (_, i) => new UserMessage('ä "x" '.repeat(200) + i))
  const request = requestOf(messages)
  const target = { provider: 'v', modelId: 'm', dialect: dialects.get(wire) }
  const { body, pieces } = wire.encodeRequest(request, target, 'stream')
  expect(Array.isArray(pieces)).toBe(true)
  expect(pieces!.map(textOf).join('')).toBe(body)
  expect(body).toBe(encode(wire, unseen(messages)).body)
  const own = { ...request, params: { messages: [1], input: [1] } }
  const overridden = wire.encodeRequest(own, target, 'stream')
  expect(
    JSON.parse(overridden.body)[wire.name === 'openai-responses' ? 'input' : 'messages'],
  ).toEqual([1])
  expect(overridden.pieces).toBeUndefined()
})

test('messages that may still change are read anew each time', () => {
  const plain = { ...new UserMessage('one') } as unknown as UserMessage
  const encodeAll = (list: readonly Message[]): string[] =>
    list.map((message) => JSON.stringify((message as UserMessage).content))
  const before = encodeHistory([plain], 'key', encodeAll, [])
  Object.assign(plain, { content: [{ type: 'text', text: 'two' }] })
  expect(encodeHistory([plain], 'key', encodeAll, [])).not.toBe(before)
})

test('warnings of what was sent before are told again', () => {
  const encodeAll = (list: readonly Message[], warnings: Warning[]): string[] => {
    for (const { id } of list) warnings.push({ code: 'seen', message: id })
    return list.map(() => '0')
  }
  const first = new UserMessage('a', { id: 'first' })
  encodeHistory([first], 'key', encodeAll, [])
  const warnings: Warning[] = []
  encodeHistory([first, new UserMessage('b', { id: 'second' })], 'key', encodeAll, warnings)
  expect(warnings.map(({ message }) => message)).toEqual(['first', 'second'])
})
