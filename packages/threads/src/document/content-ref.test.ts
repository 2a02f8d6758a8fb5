import { describe, expect, test } from 'vitest'
import { agentTurn, answer, call, request, response, thread, userTurn } from '../../test/samples.ts'
import { toPydanticAI } from '../convert/pydantic-ai/index.ts'
import { offloadContent, restoreContent, type ContentStore } from './content-ref.ts'
import { parseThread, stringifyThread } from './thread-text.ts'
import { validateThread } from './validate.ts'

function memoryStore(): ContentStore & { readonly items: Map<string, Uint8Array> } {
  const items = new Map<string, Uint8Array>()
  return { items, put: (uri, bytes) => void items.set(uri, bytes), get: (uri) => items.get(uri) }
}

const big = { rows: Array.from({ length: 5000 }, (_, index) => `row ${index} of many, many rows`) }
const sample = thread([
  agentTurn('ada', [
    response('ada', 1, call('a'), call('b'), call('c')),
    request(
      'ada',
      2,
      answer('a', 'look_up', big),
      answer('b', 'look_up', 'x'.repeat(200_000)),
      answer('c', 'look_up', 'small'),
    ),
  ]),
])

describe('content_ref', () => {
  test('moves large returns out and brings them back equal', async () => {
    const store = memoryStore()
    const light = await offloadContent(sample, { store })
    expect(JSON.stringify(light).length).toBeLessThan(3000)
    const [a, b, c] = (light.turns[0] as never as { messages: { parts: never[] }[] }).messages[1]!
      .parts
    expect(a).toMatchObject({ content: null, content_ref: { media_type: 'application/json' } })
    expect((b as unknown as { content: string }).content).toHaveLength(200)
    expect(c).toEqual(answer('c', 'look_up', 'small'))
    expect(validateThread(light).issues.filter((issue) => issue.severity === 'error')).toEqual([])
    expect(await restoreContent(light, store)).toEqual(sample)
    expect(await offloadContent(light, { store })).toBe(light)
  })

  test('equal contents are stored once, and number text survives', async () => {
    const store = memoryStore()
    const doubled = stringifyThread(sample).replaceAll('"row 0 of many, many rows"', '18.0')
    const light = await offloadContent(parseThread(doubled), { store, minBytes: 1000 })
    await offloadContent(parseThread(doubled), { store, minBytes: 1000 })
    expect(store.items.size).toBe(2)
    expect(stringifyThread(await restoreContent(light, store))).toBe(doubled)
  })

  test('a store that lost or changed the content is an error', async () => {
    const store = memoryStore()
    const light = await offloadContent(sample, { store })
    for (const uri of store.items.keys()) store.items.set(uri, new TextEncoder().encode('"other"'))
    await expect(restoreContent(light, store)).rejects.toMatchObject({ code: 'CONTENT_CHANGED' })
    store.items.clear()
    await expect(restoreContent(light, store)).rejects.toMatchObject({ code: 'CONTENT_MISSING' })
  })
})

test('the bytes of files, attachments, speech and provider tools are moved too', async () => {
  const store = memoryStore()
  const data = 'aGk_'.repeat(1000)
  const binary = { kind: 'binary', data, media_type: 'image/png', identifier: 'b1' } as const
  const heavy = thread([
    userTurn([
      { part_kind: 'user-prompt', content: ['Look.', binary, { ...binary, data: 'AAAA' }] },
      { part_kind: 'speech', speaker: 'user', audio: { ...binary, media_type: 'audio/wav' } },
    ]),
    agentTurn('ada', [
      response(
        'ada',
        1,
        { part_kind: 'file', content: { ...binary, vendor_metadata: { a: 1 } } },
        { part_kind: 'builtin-tool-call', tool_name: 's', tool_call_id: 'b', args: {} },
        { part_kind: 'builtin-tool-return', tool_name: 's', tool_call_id: 'b', content: { data } },
      ),
    ]),
  ])
  const before = stringifyThread(heavy)
  const light = await offloadContent(heavy, { store, minBytes: 1000 })
  expect(stringifyThread(light).length).toBeLessThan(3000)
  expect(stringifyThread(light)).not.toContain(data)
  expect(store.items.size).toBe(2) // the same bytes are stored once
  expect(validateThread(light).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  expect(stringifyThread(heavy)).toBe(before)
  expect(stringifyThread(await restoreContent(parseThread(stringifyThread(light)), store))).toBe(
    before,
  )
  // Whoever exports a thread with moved bytes is told.
  const { lost } = toPydanticAI(light)
  expect(lost.filter(({ reason }) => reason.includes('kept elsewhere'))).toHaveLength(4)
})

describe('TP-52 what is moved, and what is not', () => {
  const png = {
    kind: 'binary',
    data: 'A'.repeat(98),
    media_type: 'image/png',
    identifier: 'b',
  } as const
  const wav = { ...png, media_type: 'audio/wav' } as const
  const inTurn = (part: object) => thread([userTurn([part as never])])

  test('TP-52 a content of exactly the least size is moved, one byte less is not; the reference says what it is', async () => {
    const store = memoryStore()
    const moving = thread([
      agentTurn('ada', [request('ada', 1, answer('a', 'look_up', 'x'.repeat(98)))]),
    ])
    expect(await offloadContent(moving, { store, minBytes: 101 })).toBe(moving)
    const light = await offloadContent(moving, { store, minBytes: 100, previewChars: 3 })
    const [uri] = [...store.items.keys()]
    const { parts } = (light.turns[0] as never as { messages: { parts: unknown[] }[] }).messages[0]!
    expect(parts[0]).toEqual({
      ...answer('a', 'look_up', 'xxx'),
      content_ref: {
        uri,
        size_bytes: 100,
        hash: uri!.replace('sha256:', ''),
        media_type: 'application/json',
      },
    })
    const binary = await offloadContent(inTurn({ part_kind: 'file', content: png }), {
      store,
      minBytes: 100,
    })
    expect(binary.turns[0]).toMatchObject({
      parts: [{ content: { data: '', content_ref: { media_type: 'image/png', size_bytes: 100 } } }],
    })
    // What was moved before is not moved again, whatever the limit.
    expect(await offloadContent(binary, { store, minBytes: 0 })).toBe(binary)
    expect(await offloadContent(light, { store, minBytes: 0 })).toBe(light)
    const speech = await offloadContent(
      inTurn({ part_kind: 'speech', speaker: 'user', audio: wav }),
      { store, minBytes: 1 },
    )
    expect(speech.turns[0]).toMatchObject({
      parts: [{ audio: { data: '', content_ref: { media_type: 'audio/wav' } } }],
    })
  })

  test.each([
    { part_kind: 'file', content: { ...png, kind: 'image-url', url: 'https://x.test' } },
    { part_kind: 'file', content: { ...png, data: 5 } },
    { part_kind: 'file', content: null },
    { part_kind: 'file', content: 'text' },
    { part_kind: 'user-prompt', content: 'x'.repeat(200) },
    { part_kind: 'user-prompt', content: ['x'.repeat(200), null, { kind: 'document-url' }] },
    { part_kind: 'speech', speaker: 'user' },
    { part_kind: 'text', content: 'x'.repeat(200) },
    { part_kind: 'custom:plan', steps: ['x'.repeat(200)] },
  ])('TP-52 %o stays the same object', async (part) => {
    const store = memoryStore()
    const whole = inTurn(part)
    expect(await offloadContent(whole, { store, minBytes: 1 })).toBe(whole)
    expect(await restoreContent(whole, store)).toBe(whole)
    expect(store.items.size).toBe(0)
  })

  test('TP-08 turns, messages and parts of other forms are passed over', async () => {
    const store = memoryStore()
    const odd = thread([
      { turn_type: 'pause' } as never,
      { turn_type: 'user', submitted_at: '', parts: 'none' } as never,
      agentTurn('ada', [
        { message_type: 'system', timestamp: '', event_type: 'x', event_data: 'x'.repeat(99) },
        { message_type: 'note' } as never,
      ]),
    ])
    expect(await offloadContent(odd, { store, minBytes: 1 })).toBe(odd)
  })
})
