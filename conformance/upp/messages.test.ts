import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  AssistantMessage,
  Audio,
  ContentBlockType,
  Document,
  Image,
  isAssistantMessage,
  isToolResultMessage,
  isUserMessage,
  isUPPError,
  llm,
  messageFromJSON,
  messageToJSON,
  Thread,
  ToolResultMessage,
  UserMessage,
  Video,
  type AssistantContent,
  type Message,
  type UserContent,
} from '@skein/ai'
import { addUsage, contentOf } from '@skein/ai/engine'
import { says, scripted } from '@skein/ai/testing'

const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
const jpeg = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46])
const wav = new TextEncoder().encode('RIFF\x24\0\0\0WAVEfmt ')
const mp3 = Uint8Array.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0])
const mp4 = Uint8Array.from([0, 0, 0, 24, ...new TextEncoder().encode('ftypisom')])
const webm = Uint8Array.from([0x1a, 0x45, 0xdf, 0xa3, 1, 0, 0, 0])
const pdf = new TextEncoder().encode('%PDF-1.7\n')
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

const userBlocks: readonly UserContent[] = [
  { type: 'text', text: 'a' },
  { type: 'image', source: { type: 'bytes', data: png }, mimeType: 'image/png' },
  { type: 'image', source: { type: 'base64', data: base64(png) }, mimeType: 'image/png' },
  { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' }, mimeType: 'image/png' },
  { type: 'document', source: { type: 'text', data: 'd' }, mimeType: 'text/plain', title: 't' },
  { type: 'document', source: { type: 'base64', data: base64(pdf) }, mimeType: 'application/pdf' },
  {
    type: 'document',
    source: { type: 'url', url: 'https://x.test/a.pdf' },
    mimeType: 'application/pdf',
  },
  { type: 'audio', data: wav, mimeType: 'audio/wav' },
  { type: 'video', data: mp4, mimeType: 'video/mp4' },
  { type: 'binary', data: Uint8Array.of(1, 2), mimeType: 'application/octet-stream' },
  { type: 'text', text: 'b' },
]
const assistantBlocks: readonly AssistantContent[] = [
  { type: 'reasoning', text: 'hm' },
  { type: 'text', text: 'one' },
  { type: 'image', source: { type: 'bytes', data: png }, mimeType: 'image/png' },
  { type: 'audio', data: mp3, mimeType: 'audio/mpeg' },
  { type: 'video', data: webm, mimeType: 'video/webm' },
  { type: 'text', text: 'two' },
]

describe('messages', () => {
  test('UPP-063 a message has a unique id, a type and a time; metadata only if given', () => {
    const ids = new Set<string>()
    for (let i = 0; i < 10_000; i += 1) ids.add(new UserMessage('x').id)
    expect(ids.size).toBe(10_000)
    const before = Date.now()
    const message = new UserMessage('x')
    expect(
      [message, new AssistantMessage('x'), new ToolResultMessage([])].map((m) => m.type),
    ).toEqual(['user', 'assistant', 'tool_result'])
    expect(message.timestamp).toBeInstanceOf(Date)
    expect(message.timestamp.getTime()).toBeGreaterThanOrEqual(before)
    expect('metadata' in message).toBe(false)
    const given = new UserMessage('x', {
      id: 'i',
      timestamp: new Date(5),
      metadata: { vendor: { a: 1 } },
    })
    expect([given.id, given.timestamp.getTime(), given.metadata]).toEqual([
      'i',
      5,
      { vendor: { a: 1 } },
    ])
  })

  test('UPP-064 text joins the text blocks of every kind of message, without a separator', () => {
    expect(new UserMessage(userBlocks).text).toBe('ab')
    expect(new AssistantMessage(assistantBlocks).text).toBe('onetwo')
    const result = { type: 'text', text: 'from a tool' }
    expect(new ToolResultMessage([{ toolCallId: 'c', result }]).text).toBe('from a tool')
    const parts = [result, { type: 'text', text: '!' }]
    expect(new ToolResultMessage([{ toolCallId: 'c', result: parts }]).text).toBe('from a tool!')
    expect(new UserMessage([]).text).toBe('')
  })

  test('UPP-065 media accessors exist on all three kinds and keep order', () => {
    const user = new UserMessage(userBlocks)
    expect(user.images.map((image) => image.source.type)).toEqual(['bytes', 'base64', 'url'])
    expect(user.documents.map((document) => document.source.type)).toEqual([
      'text',
      'base64',
      'url',
    ])
    expect([user.audio.length, user.video.length]).toEqual([1, 1])
    const assistant = new AssistantMessage(assistantBlocks)
    expect([assistant.images, assistant.audio, assistant.video].map((l) => l.length)).toEqual([
      1, 1, 1,
    ])
    expect(assistant.documents).toEqual([])
    const results = new ToolResultMessage([
      { toolCallId: 'c', result: [Image.fromBytes(png), { type: 'text', text: 'x' }] },
      { toolCallId: 'd', result: { type: 'not a block' } },
    ])
    expect(results.images).toHaveLength(1)
    expect([results.documents, results.audio, results.video]).toEqual([[], [], []])
    const all = [
      Image.fromBytes(png),
      Document.fromText('d'),
      Audio.fromBytes(wav),
      Video.fromBytes(mp4),
    ]
    const { images, documents, audio, video } = new ToolResultMessage([
      { toolCallId: 'c', result: all },
    ])
    expect([images, documents, audio, video]).toEqual(all.map((block) => [block]))
  })

  test('UPP-066 user content takes six kinds of blocks, and a string for one text block', () => {
    expect(new UserMessage(userBlocks).content).toEqual(userBlocks)
    expect(new UserMessage(' hi\n').content).toEqual([{ type: 'text', text: ' hi\n' }])
    expect(() => new UserMessage([{ type: 'reasoning', text: 'x' } as never])).toThrow(/reasoning/)
  })

  test('UPP-067 assistant content; hasToolCalls is true only for a non-empty list', () => {
    expect(new AssistantMessage(assistantBlocks).content).toEqual(assistantBlocks)
    const call = { toolCallId: 'c', toolName: 't', arguments: {} }
    expect(new AssistantMessage('x').hasToolCalls).toBe(false)
    expect(new AssistantMessage('x', []).hasToolCalls).toBe(false)
    expect(new AssistantMessage('x', [call]).hasToolCalls).toBe(true)
    const asked = { toolCallId: 'd', toolName: 'u', arguments: { a: [1] } }
    expect(new AssistantMessage('x', [call, asked]).toolCalls).toEqual([call, asked])
    expect('toolCalls' in new AssistantMessage('x')).toBe(false)
    const document = { type: 'document', source: { type: 'text', data: 'd' }, mimeType: 'a/b' }
    expect(() => new AssistantMessage([document as never])).toThrow(/document/)
  })

  test('UPP-068 a tool result message holds the results in order', () => {
    const results = [
      { toolCallId: 'a', result: 1 },
      { toolCallId: 'b', result: { x: [1] }, isError: true },
    ]
    const message = new ToolResultMessage(results)
    expect(message.type).toBe('tool_result')
    expect(message.results).toEqual(results)
  })

  test('UPP-069 there are seven block types, and helpers make them with their fields', () => {
    const { Native, ...types } = ContentBlockType
    expect(Native).toBe('native') // what no type of UPP can hold
    expect(Object.values(types).toSorted()).toEqual(
      [...new Set([...userBlocks, ...assistantBlocks].map(({ type }) => type))].toSorted(),
    )
    expect(Object.values(types)).toHaveLength(7)
    const made = [
      Image.fromBytes(png),
      Document.fromText('d', 't'),
      Audio.fromBytes(wav),
      Video.fromBytes(mp4),
    ]
    expect(made.map((media) => media.toBlock())).toEqual([
      { type: 'image', source: { type: 'bytes', data: png }, mimeType: 'image/png' },
      {
        type: 'document',
        source: { type: 'text', data: 'd' },
        mimeType: 'text/plain',
        title: 't',
      },
      { type: 'audio', data: wav, mimeType: 'audio/wav' },
      { type: 'video', data: mp4, mimeType: 'video/mp4' },
    ])
  })

  test('UPP-070 a binary block is refused in an assistant message', () => {
    const binary: UserContent = { type: 'binary', data: new Uint8Array(), mimeType: 'x/y' }
    const error = catchError(() => new AssistantMessage([binary as never]))
    expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
    expect(String(error)).toMatch(/Block 0.*binary/)
  })

  test('a message and all it holds are frozen', () => {
    const message = new UserMessage(userBlocks, { metadata: { vendor: { list: [1] } } })
    expect(Object.isFrozen(message)).toBe(true)
    expect(Object.isFrozen(message.content[0])).toBe(true)
    expect(Object.isFrozen(message.metadata?.['vendor']?.['list'])).toBe(true)
  })
})

describe('helpers', () => {
  let folder: string
  const file = async (name: string, data: Uint8Array | string): Promise<string> => {
    await writeFile(join(folder, name), data)
    return join(folder, name)
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skein-media-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  test('UPP-072 Image: path, URL, bytes, base64 and block', async () => {
    const fromPath = await Image.fromPath(await file('picture.bin', png))
    expect(fromPath.mimeType).toBe('image/png')
    expect(fromPath.toBytes()).toEqual(new Uint8Array(png))
    expect(fromPath.toBase64()).toBe(base64(png))
    expect(Image.fromBytes(jpeg).mimeType).toBe('image/jpeg')
    expect(Image.fromBytes(Uint8Array.of(1, 2, 3), 'image/x-own').mimeType).toBe('image/x-own')
    expect(Image.fromBase64(base64(png)).toBytes()).toEqual(new Uint8Array(png))
    expect(Image.fromBase64(base64(png)).toBase64()).toBe(base64(png))
    expect(Image.fromBytes(png).toBase64()).toBe(base64(png))
    const remote = Image.fromUrl('https://x.test/photo.jpg?size=2')
    expect([remote.mimeType, remote.source]).toEqual([
      'image/jpeg',
      { type: 'url', url: 'https://x.test/photo.jpg?size=2' },
    ])
    expect(Image.fromUrl('https://x.test/photo', 'image/webp').mimeType).toBe('image/webp')
    expect(() => remote.toBytes()).toThrow(/address/)
    expect(Image.fromBlock(fromPath.toBlock()).toBlock()).toEqual(fromPath.toBlock())
    expect(new UserMessage([fromPath]).images[0]?.mimeType).toBe('image/png')
  })

  test('UPP-073 Document: path, URL, base64 and text, each with a title', async () => {
    const text = await Document.fromPath(await file('notes.md', '# Hé'), 'Notes')
    expect(text.toBlock()).toEqual({
      type: 'document',
      source: { type: 'text', data: '# Hé' },
      mimeType: 'text/markdown',
      title: 'Notes',
    })
    const paper = await Document.fromPath(await file('paper', pdf))
    expect([paper.mimeType, paper.source, paper.title]).toEqual([
      'application/pdf',
      { type: 'base64', data: base64(pdf) },
      undefined,
    ])
    expect(Document.fromUrl('https://x.test/a.txt', 'T')).toMatchObject({
      source: { type: 'url', url: 'https://x.test/a.txt' },
      mimeType: 'text/plain',
      title: 'T',
    })
    expect(Document.fromBase64(base64(pdf), 'application/pdf', 'P').toBlock()).toEqual({
      type: 'document',
      source: { type: 'base64', data: base64(pdf) },
      mimeType: 'application/pdf',
      title: 'P',
    })
    expect(Document.fromText('hi', 'T').toBlock()).toEqual({
      type: 'document',
      source: { type: 'text', data: 'hi' },
      mimeType: 'text/plain',
      title: 'T',
    })
    const latin = await file('latin.txt', Uint8Array.of(0xe9, 0x20))
    await expect(Document.fromPath(latin)).rejects.toThrow(/UTF-8/)
  })

  test('UPP-074 Audio: path, bytes and base64', async () => {
    const audio = await Audio.fromPath(await file('sound.mp3', mp3))
    expect([audio.type, audio.mimeType]).toEqual(['audio', 'audio/mpeg'])
    expect(audio.toBytes()).toEqual(new Uint8Array(mp3))
    expect(Audio.fromBytes(wav).toBlock()).toEqual({
      type: 'audio',
      data: wav,
      mimeType: 'audio/wav',
    })
    const given = Audio.fromBase64(base64(wav), 'audio/x-wav')
    expect([given.type, given.mimeType, given.toBase64()]).toEqual([
      'audio',
      'audio/x-wav',
      base64(wav),
    ])
    expect(Audio.fromBytes(mp4, 'audio/mp4').mimeType).toBe('audio/mp4')
  })

  test('UPP-075 Video: path, bytes and base64', async () => {
    const video = await Video.fromPath(await file('film', webm))
    expect([video.type, video.mimeType]).toEqual(['video', 'video/webm'])
    expect(video.toBytes()).toEqual(new Uint8Array(webm))
    expect(Video.fromBytes(mp4).toBlock()).toEqual({
      type: 'video',
      data: mp4,
      mimeType: 'video/mp4',
    })
    const given = Video.fromBase64(base64(webm), 'video/x-matroska')
    expect([given.type, given.mimeType]).toEqual(['video', 'video/x-matroska'])
    expect(given.toBytes()).toEqual(new Uint8Array(webm))
  })

  test('UPP-161 data that is not of the declared type is refused, naming both', () => {
    for (const refused of [
      () => Image.fromBytes(png, 'image/jpeg'),
      () => Image.fromBase64(base64(pdf)),
      () => Image.fromBytes(png, 'text/plain'),
      () => Document.fromBase64(base64(png), 'application/pdf'),
      () => Audio.fromBytes(png, 'audio/mpeg'),
      () => Video.fromBytes(wav, 'video/mp4'),
      () => Image.fromBytes(Uint8Array.of(9, 9)),
      () => Image.fromUrl('file:///etc/passwd'),
      () => Document.fromUrl('not a url'),
    ]) {
      const error = catchError(refused)
      expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
    }
    expect(() => Image.fromBytes(png, 'image/jpeg')).toThrow(/image\/png.*image\/jpeg/)
  })

  test('UPP-162 files over the limit, and files that are not there, are typed errors', async () => {
    const big = await file('big.png', Buffer.concat([png, Buffer.alloc(100)]))
    await expect(Image.fromPath(big, { maxBytes: 50 })).rejects.toThrow(/112 bytes.*50/)
    await expect(Document.fromPath(big, 'T', { maxBytes: 50 })).rejects.toThrow(/limit/)
    await expect(Audio.fromPath(big, { maxBytes: 50 })).rejects.toThrow(/limit/)
    expect((await Image.fromPath(big, { maxBytes: 112 })).toBytes()).toHaveLength(112)
    const missing = await Image.fromPath(join(folder, 'none.png')).catch((e: unknown) => e)
    expect(isUPPError(missing) && missing.code).toBe('INVALID_REQUEST')
    expect(String(missing)).toMatch(/ENOENT/)
  })
})

test('UPP-076 type guards work on parsed JSON, not only on our classes', () => {
  const messages = [
    new UserMessage('a'),
    new AssistantMessage('b'),
    new ToolResultMessage([{ toolCallId: 'c', result: 1 }]),
  ]
  const plain = JSON.parse(JSON.stringify(messages.map(messageToJSON))) as unknown[]
  for (const list of [messages, plain]) {
    expect(list.map((m) => isUserMessage(m))).toEqual([true, false, false])
    expect(list.map((m) => isAssistantMessage(m))).toEqual([false, true, false])
    expect(list.map((m) => isToolResultMessage(m))).toEqual([false, false, true])
  }
  for (const other of [null, undefined, 'user', {}, { type: 'system' }])
    expect(isUserMessage(other) || isAssistantMessage(other) || isToolResultMessage(other)).toBe(
      false,
    )
})

describe('threads', () => {
  test('UPP-084 a plain array does all that a thread does', async () => {
    const thread = new Thread()
    const list: Message[] = []
    const ask = async (history: Thread | readonly Message[]): Promise<readonly Message[]> => {
      const model = llm({ model: scripted([says('A'), says('B')]) })
      const first = await model.generate(history, 'one')
      if (history instanceof Thread) history.append(first)
      else list.push(...first.messages)
      return (await model.generate(history, 'two')).messages
    }
    const texts = (messages: Iterable<Message>): string[] => [...messages].map((m) => m.text)
    expect(texts(await ask(thread))).toEqual(texts(await ask(list)))
    expect(texts(thread)).toEqual(texts(list))
  })

  test('UPP-085 id, messages, length, append, push and clear; the view cannot change it', () => {
    const thread = new Thread({ id: 'x' })
    const user = new UserMessage('a')
    const assistant = new AssistantMessage('b')
    thread.push(user, assistant)
    const view = thread.messages
    expect([thread.id, thread.length, [...view]]).toEqual(['x', 2, [user, assistant]])
    expect(() => (view as Message[]).push(user)).toThrow(TypeError)
    expect(thread.length).toBe(2)
    thread.append({ messages: [user] } as never)
    expect(thread.messages).toEqual([user, assistant, user])
    expect(view).toHaveLength(2)
    expect(() => thread.push({ role: 'x' } as never)).toThrow(/not a message/)
    thread.clear()
    expect([thread.length, thread.messages]).toEqual([0, []])
    expect(new Thread().id).not.toBe(new Thread().id)
  })

  test('UPP-086 bytes in media helpers survive too, in a thread, a turn or a message alone', async () => {
    const media = [Image.fromBytes(png), Audio.fromBytes(wav), Video.fromBytes(mp4)]
    const asked = new UserMessage(media)
    const answered = new ToolResultMessage([{ toolCallId: 'c', result: [Image.fromBytes(png)] }])
    const thread = new Thread({ messages: [asked, answered] })
    const copies = [
      Thread.fromJSON(JSON.parse(JSON.stringify(thread))).messages,
      (JSON.parse(JSON.stringify(thread.messages)) as unknown[]).map(messageFromJSON),
    ]
    for (const [first, second] of copies) {
      const [image] = first!.images
      expect(image?.source).toEqual({ type: 'bytes', data: new Uint8Array(png) })
      expect(first!.audio[0]?.data).toEqual(new Uint8Array(wav))
      expect(first!.video[0]?.data).toEqual(new Uint8Array(mp4))
      expect(second!.images[0]?.source).toEqual({ type: 'bytes', data: new Uint8Array(png) })
    }
    const model = scripted([says('Seen.')])
    await llm({ model }).generate(JSON.parse(JSON.stringify([asked])), 'What is it?')
    expect(model.requests[0]?.messages[0]).toEqual(copies[0]![0])
  })

  test('UPP-086 UPP-140 JSON and back is lossless: ids, times, metadata, calls, bytes', () => {
    const clock = manualClock(Date.UTC(2025, 1, 3))
    const thread = new Thread({ clock })
    clock.advance(5_000)
    thread.push(
      new UserMessage(userBlocks, { metadata: { vendor: { cache: { ttl: '1h' }, n: null } } }),
      new AssistantMessage(
        assistantBlocks,
        [
          {
            toolCallId: 'c',
            toolName: 't',
            arguments: { a: [1, { b: null }] },
            after: ['x'],
            metadata: { v: { sig: 's' } },
          },
        ],
        { timestamp: new Date('2026-01-02T03:04:05.678Z') },
      ),
      new ToolResultMessage([
        { toolCallId: 'c', result: { bytes: Uint8Array.of(0, 255), $bytes: 'data' } },
        { toolCallId: 'd', result: { $bytes: 'not bytes' }, isError: true },
        { toolCallId: 'e', result: { $escaped: { $bytes: 'x' } } },
      ]),
    )
    const text = JSON.stringify(thread)
    const back = Thread.fromJSON(JSON.parse(text))
    expect(back.messages).toEqual(thread.messages)
    expect(back.messages[1]?.timestamp.getTime()).toBe(Date.parse('2026-01-02T03:04:05.678Z'))
    expect(JSON.stringify(back)).toBe(text)
    expect(back.id).toBe(thread.id)
    expect(back.createdAt).toEqual(new Date('2025-02-03T00:00:00.000Z'))
    expect(back.updatedAt).toEqual(new Date('2025-02-03T00:00:05.000Z'))
    expect(back.messages[1]).toBeInstanceOf(AssistantMessage)
    expect(text).toContain('"2026-01-02T03:04:05.678Z"')
  })

  test('UPP-086 UPP-165 every member that a message, a block, a call or a result may have comes back', () => {
    const metadata = { vendor: { a: [1, null], bytes: { $bytes: 'AQ==' } } }
    const options = { id: 'i', timestamp: new Date('2026-01-02T03:04:05.678Z'), metadata }
    const invalidArguments = { text: '{"a":', reason: 'cut off' }
    const call = { toolCallId: 'c', toolName: 't', arguments: {}, after: ['b'], metadata }
    const result = { toolCallId: 'c', toolName: 't', result: null, isError: true, metadata }
    const messages = [
      new UserMessage(
        userBlocks.map((block) => ({ ...block, metadata })),
        options,
      ),
      new AssistantMessage(
        assistantBlocks.map((block) => ({ ...block, metadata })),
        [{ ...call, invalidArguments }, call],
        options,
      ),
      new AssistantMessage('a', [], options),
      new AssistantMessage('a', undefined, options),
      new ToolResultMessage([result, { toolCallId: 'd', result: 0, isError: false }], options),
    ]
    const thread = Thread.fromJSON(JSON.parse(JSON.stringify(new Thread({ messages }))))
    expect(thread.messages).toStrictEqual(messages)
    for (const message of messages) {
      expect(messageFromJSON(JSON.parse(JSON.stringify(message)))).toStrictEqual(message)
      expect(messageFromJSON(messageToJSON(message))).toStrictEqual(message)
    }
  })

  test('any JSON in arguments, results and metadata comes back as it was', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (args, result) => {
        const message = new AssistantMessage(
          [],
          [{ toolCallId: 'c', toolName: 't', arguments: args as never }],
          { metadata: { v: { result } as never } },
        )
        const results = new ToolResultMessage([{ toolCallId: 'c', result }])
        for (const one of [message, results]) {
          const back = messageFromJSON(JSON.parse(JSON.stringify(messageToJSON(one))))
          expect(JSON.stringify(messageToJSON(back))).toBe(JSON.stringify(messageToJSON(one)))
        }
      }),
      { seed: 7, numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 300 },
    )
  })

  test('UPP-165 MessageJSON and ThreadJSON have the documented members and no others', () => {
    const thread = new Thread()
    thread.push(
      new UserMessage('a'),
      new UserMessage('a', { metadata: { vendor: { n: 1 } } }),
      new AssistantMessage('b', [{ toolCallId: 'c', toolName: 't', arguments: {} }]),
      new ToolResultMessage([{ toolCallId: 'c', result: 1 }]),
    )
    const json = JSON.parse(JSON.stringify(thread)) as Record<string, unknown>
    expect(Object.keys(json)).toEqual(['id', 'messages', 'createdAt', 'updatedAt'])
    expect((json['messages'] as object[]).map((m) => Object.keys(m))).toEqual([
      ['id', 'type', 'content', 'timestamp'],
      ['id', 'type', 'content', 'metadata', 'timestamp'],
      ['id', 'type', 'content', 'toolCalls', 'timestamp'],
      ['id', 'type', 'content', 'results', 'timestamp'],
    ])
    expect(json['createdAt']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect((json['messages'] as { timestamp: string }[]).map((m) => m.timestamp)).toEqual(
      thread.messages.map((message) => message.timestamp.toISOString()),
    )
  })

  test('hostile or broken JSON is refused with the field that is wrong', () => {
    const good = messageToJSON(new UserMessage('x'))
    const refusals: [unknown, RegExp][] = [
      [null, /not an object/],
      [{ ...good, id: 3 }, /id/],
      [{ ...good, type: 'system' }, /type/],
      [{ ...good, content: 'x' }, /content/],
      [{ ...good, content: [{ type: 'evil' }] }, /evil/],
      [{ ...good, content: ['hi'] }, /content\[0\] is not an object/],
      [{ ...good, content: [null] }, /content\[0\] is not an object/],
      [{ ...good, content: [{ type: 'text' }] }, /content\[0\]\.text is not a string/],
      [{ ...good, type: 'assistant', content: [{ type: 'reasoning' }] }, /content\[0\]\.text/],
      [{ ...good, content: [good.content![0], { type: 'image' }] }, /content\[1\]\.source/],
      [{ ...good, content: [{ type: 'image', source: 'https://a' }] }, /\.source is not an object/],
      [
        { ...good, content: [{ type: 'document', mimeType: 'text/plain' }] },
        /content\[0\]\.source/,
      ],
      [{ ...good, content: [{ type: 'audio', data: 'AQ==' }] }, /content\[0\]\.data is not bytes/],
      [{ ...good, content: [{ type: 'video' }] }, /content\[0\]\.data is not bytes/],
      [{ ...good, content: [{ type: 'binary' }] }, /content\[0\]\.data is not bytes/],
      [{ ...good, timestamp: 'yesterday' }, /timestamp/],
      [{ ...good, metadata: [] }, /metadata/],
      [{ ...good, type: 'assistant', toolCalls: [{ toolCallId: 'c' }] }, /toolCalls\[0\].toolName/],
      [{ ...good, type: 'tool_result' }, /results/],
    ]
    for (const [json, pattern] of refusals) expect(() => messageFromJSON(json)).toThrow(pattern)
    expect(() => Thread.fromJSON('{')).toThrow(/not JSON/)
    const polluted = JSON.parse(
      '{"id":"1","type":"assistant","content":[],"toolCalls":[{"toolCallId":"c","toolName":"t","arguments":{"__proto__":{"x":1}}}],"timestamp":"2026-01-01T00:00:00.000Z"}',
    ) as unknown
    const message = messageFromJSON(polluted) as AssistantMessage
    expect(Object.keys(message.toolCalls?.[0]?.arguments ?? {})).toEqual(['__proto__'])
    expect(({} as { x?: number }).x).toBeUndefined()
  })
})

function catchError(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

test('UPP-080 usage adds up field by field; what one side lacks is taken from the other', () => {
  const plain = { inputTokens: 1, outputTokens: 2, totalTokens: 3, cacheReadTokens: 4, cacheWriteTokens: 5 } // prettier-ignore
  const full = { ...plain, reasoningTokens: 6, costUsd: 7, serverToolUse: { web_search: 8 } }
  const twice = { inputTokens: 2, outputTokens: 4, totalTokens: 6, cacheReadTokens: 8, cacheWriteTokens: 10 } // prettier-ignore
  const rest = { reasoningTokens: 6, costUsd: 7, serverToolUse: { web_search: 8 } }
  expect(addUsage(plain, full)).toEqual({ ...twice, ...rest })
  expect(addUsage(full, plain)).toEqual({ ...twice, ...rest })
  expect(addUsage(full, full)).toEqual({
    ...twice,
    reasoningTokens: 12,
    costUsd: 14,
    serverToolUse: { web_search: 16 },
  })
  expect(addUsage(plain, plain).costUsd).toBeUndefined()
})

test('UPP-068 a list is content only if every item of it is a block', () => {
  const block = { type: 'text', text: 'a' }
  expect(contentOf([block])).toEqual([block])
  expect(contentOf(block)).toEqual([block])
  for (const result of [[block, 'b'], [block, { type: 'other' }], [], 'a', null, { text: 'a' }])
    expect(contentOf(result), JSON.stringify(result)).toEqual([])
})

test('UPP-086 a thread without an id, or with an empty one, is refused', () => {
  const { id: _, ...json } = new Thread().toJSON()
  for (const wrong of [json, { ...json, id: '' }, { ...json, id: 7 }])
    expect(() => Thread.fromJSON(wrong)).toThrow('Thread JSON has no id.')
})

test('UPP-068 audio and video of a result have their bytes again', () => {
  const bytes = { $bytes: 'AQI=' }
  const blocks = contentOf([
    { type: 'audio', data: bytes, mimeType: 'audio/wav' },
    { type: 'video', data: bytes, mimeType: 'video/mp4' },
  ])
  expect(blocks).toEqual([
    { type: 'audio', data: new Uint8Array([1, 2]), mimeType: 'audio/wav' },
    { type: 'video', data: new Uint8Array([1, 2]), mimeType: 'video/mp4' },
  ])
})

test('UPP-165 the JSON of a message has only the fields that its kind has', () => {
  const call = { toolCallId: 'c', toolName: 'f', arguments: {} }
  const keys = (message: Message) => Object.keys(messageToJSON(message)).toSorted()
  const common = ['content', 'id', 'timestamp', 'type']
  expect(keys(new UserMessage('a'))).toEqual(common)
  expect(keys(new AssistantMessage('a'))).toEqual(common)
  expect(keys(new AssistantMessage('a', [call]))).toEqual([...common, 'toolCalls'].toSorted())
  expect(keys(new UserMessage('a', { metadata: { x: { y: 1 } } }))).toEqual(
    [...common, 'metadata'].toSorted(),
  )
  expect(messageToJSON(new ToolResultMessage([{ toolCallId: 'c', result: 1 }]))).toMatchObject({
    results: [{ toolCallId: 'c', result: 1 }],
  })
})

test('UPP-085 UPP-165 every change of a thread is a new updatedAt', () => {
  const clock = manualClock(0)
  const thread = new Thread({ clock })
  const message = new UserMessage('a')
  const changes = [
    () => thread.push(message),
    () => thread.append({ messages: [message] } as never),
    () => thread.clear(),
  ]
  for (const change of changes) {
    clock.advance(1000)
    const before = thread.updatedAt.getTime()
    change()
    expect(thread.updatedAt.getTime()).toBe(before + 1000)
    expect(thread.toJSON().updatedAt).toBe(thread.updatedAt.toISOString())
  }
  expect(thread.createdAt.getTime()).toBe(0)
})
