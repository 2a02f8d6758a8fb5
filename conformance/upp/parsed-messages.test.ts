/** Messages that were parsed from JSON and not read with `messageFromJSON`: plain objects, bytes as `{ $bytes }`. */
import { manualClock } from '@skein/base'
import {
  AssistantMessage,
  llm,
  messageFromJSON,
  messageToJSON,
  Thread,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

const bytes = Uint8Array.of(1, 2, 254)
const options = { id: 'm', timestamp: new Date(7), metadata: { some: { list: [1, null] } } }
/** Each kind of message, with bytes, and with data of the application that looks like bytes. */
const messages: readonly Message[] = [
  new UserMessage(
    [
      { type: 'text', text: 'a' },
      { type: 'image', source: { type: 'bytes', data: bytes }, mimeType: 'image/png' },
      { type: 'binary', data: bytes, mimeType: 'application/x-own' },
    ],
    options,
  ),
  new AssistantMessage(
    [{ type: 'audio', data: bytes, mimeType: 'audio/wav' }],
    [{ toolCallId: 'c', toolName: 't', arguments: { $bytes: 'no base64 at all' } }],
    options,
  ),
  new ToolResultMessage(
    [
      { toolCallId: 'c', result: { $bytes: 'AQ==' } },
      { toolCallId: 'd', result: [{ $escaped: 1 }, bytes, { type: 'audio', data: bytes }] },
    ],
    options,
  ),
]
const parsed = (message: unknown): Message => JSON.parse(JSON.stringify(message)) as Message
const refused = (field: string) =>
  expect.objectContaining({
    name: 'UPPError',
    code: 'INVALID_REQUEST',
    modality: 'llm',
    message: expect.stringContaining(`Message JSON: ${field}`),
  })

describe.each(messages.map((message) => [message.type, message] as const))('%s', (_, message) => {
  test('UPP-086 UPP-165 has the same JSON as instance, as parsed JSON and as a structured clone', () => {
    const json = messageToJSON(message)
    expect(messageFromJSON(json)).toEqual(message)
    expect(messageToJSON(parsed(message))).toEqual(json)
    expect(messageToJSON(parsed(json))).toEqual(json)
    expect(messageToJSON(structuredClone({ ...message }) as Message)).toEqual(json)
  })

  test('UPP-086 UPP-085 a thread that was given parsed JSON holds the message itself', () => {
    for (const thread of [
      new Thread().push(parsed(message)),
      new Thread({ messages: [parsed(message)] }),
      new Thread().append({ messages: [parsed(message)] } as never),
    ]) {
      expect(thread.messages).toEqual([message])
      expect(thread.messages[0]).toBeInstanceOf(message.constructor)
      const again = Thread.fromJSON(JSON.stringify(thread))
      expect(again.messages).toEqual([message])
      expect(again.toJSON()).toEqual(thread.toJSON())
    }
  })

  test('UPP-086 writing JSON changes and freezes nothing of a parsed message', () => {
    const given = parsed(message)
    const before = JSON.stringify(given)
    messageToJSON(given)
    expect(JSON.stringify(given)).toBe(before)
    for (const value of Object.values(given)) expect(Object.isFrozen(value)).toBe(typeof value !== 'object') // prettier-ignore
  })

  test('UPP-085 an instance that was pushed is the one that is in the thread', () => {
    expect(new Thread().push(message).messages[0]).toBe(message)
    expect(new Thread({ messages: [message] }).messages[0]).toBe(message)
  })
})

test('UPP-086 UPP-063 a parsed message without id and time gets those of the thread', () => {
  const clock = manualClock(5_000)
  const given = { type: 'user', content: [{ type: 'text', text: 'a' }] } as unknown as Message
  const thread = new Thread({ id: 't', ids: () => 'made', clock }).push(given)
  expect(thread.toJSON().messages).toEqual([
    { id: 'made', type: 'user', content: [{ type: 'text', text: 'a' }], timestamp: new Date(5_000).toISOString() }, // prettier-ignore
  ])
  expect(new Thread({ messages: [given], ids: () => 'x', clock }).messages[0]).toMatchObject({
    id: 'x',
    timestamp: new Date(5_000),
  })
})

describe('what is no message', () => {
  const fine = { id: 'm', type: 'user', content: [], timestamp: new Date(0).toISOString() }
  const wrong: readonly (readonly [string, object, string])[] = [
    [
      'bytes that are no base64',
      { content: [{ type: 'binary', data: { $bytes: 'x' } }] },
      '$bytes',
    ],
    ['an invalid date', { timestamp: new Date(Number.NaN) }, 'timestamp'],
    ['a time that is none', { timestamp: 'yesterday' }, 'timestamp'],
    ['null as its time', { timestamp: null }, 'timestamp'],
    ['a number as its time', { timestamp: 5 }, 'timestamp'],
    ['no list of blocks', { content: 'text' }, 'content'],
    ['a block without its text', { content: [{ type: 'text' }] }, 'content[0].text'],
  ]

  test.each(wrong)(
    'UPP-030 UPP-034 %s: a UPPError in a history, an input and a thread, and nothing is sent',
    async (_, fields, field) => {
      const message = { ...fine, ...fields } as unknown as Message
      const model = scripted([says('Hi')])
      const instance = llm({ model })
      await expect(instance.generate([message], 'x')).rejects.toThrow(refused(field))
      await expect(instance.generate(message)).rejects.toThrow(refused(field))
      await expect(instance.stream([message], 'x').turn).rejects.toThrow(refused(field))
      expect(model.requests).toEqual([])
      const thread = new Thread()
      expect(() => thread.push(new UserMessage('a'), message)).toThrow(refused(field))
      expect(thread.length).toBe(0)
      expect(() => new Thread({ messages: [message] })).toThrow(refused(field))
      expect(() => messageFromJSON(message)).toThrow(refused(field))
      const json = { ...new Thread().toJSON(), messages: [message] }
      expect(() => Thread.fromJSON(json)).toThrow(refused(field))
    },
  )

  test.each([undefined, null, new Date(Number.NaN), 'yesterday'])(
    'UPP-030 a message with the time %j cannot be written',
    (timestamp) => {
      const plain = { ...fine, timestamp } as unknown as Message
      expect(() => messageToJSON(plain)).toThrow(refused('timestamp'))
      const instance = new UserMessage('a', { timestamp: new Date(Number.NaN) })
      expect(() => messageToJSON(instance)).toThrow(refused('timestamp'))
    },
  )

  test('UPP-035 the reason why bytes could not be read is the cause', () => {
    const message = { ...fine, metadata: { a: { $bytes: '!' } } }
    let error: unknown
    try {
      messageFromJSON(message)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ name: 'UPPError', cause: { code: 'BASE64_INVALID' } })
  })
})
