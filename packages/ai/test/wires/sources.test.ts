/**
 * `turn.sources` from the citations of each vendor. The answers are written from the vendors' SDK types and
 * documentation (openai 7.53.0, @anthropic-ai/sdk 1.8.0, @google/genai 2.32.0, @mistralai/mistralai 2.7.0,
 * docs.x.ai, openrouter.ai/docs); none was recorded.
 */
import { llm, NoRetry, type ModelReference, type Source, type Turn } from '@skein/ai'
import { addSources } from '@skein/ai/engine'
import { fromAiSdk, toAiSdk } from '@skein/ai/ai-sdk'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { fallback } from '@skein/ai/routing'
import { mistral } from '@skein/ai/mistral'
import { openai } from '@skein/ai/openai'
import { openrouter } from '@skein/ai/openrouter'
import { xai } from '@skein/ai/xai'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from './arbitrary-message.ts'

/** One citation of an answer, in no vendor's words. */
interface Cited {
  readonly place: string
  readonly title: string
  readonly start: number
}

interface Vendor {
  readonly name: string
  readonly model: ModelReference
  /** Whether the vendor names pages, documents or both, and whether it has titles. */
  readonly cites: 'pages' | 'both'
  readonly hasTitles: boolean
  readonly whole: (citations: readonly Cited[]) => unknown
  readonly frames: (citations: readonly Cited[]) => readonly unknown[]
}

const isPage = ({ place }: Cited): boolean => place.startsWith('http')

const annotation = ({ place, title, start }: Cited): object =>
  isPage({ place, title, start })
    ? { type: 'url_citation', url: place, title, start_index: start, end_index: start + 1 }
    : { type: 'file_citation', file_id: place, filename: title, index: start }
const nested = ({ place, title, start }: Cited): object => ({
  type: 'url_citation',
  url_citation: { url: place, title, start_index: start, end_index: start + 1 },
})
const citation = ({ place, title, start }: Cited): object =>
  isPage({ place, title, start })
    ? {
        type: 'web_search_result_location',
        url: place,
        title,
        cited_text: 'q',
        encrypted_index: '',
      }
    : {
        type: 'char_location',
        file_id: place,
        document_index: 0,
        document_title: title,
        cited_text: 'q',
        start_char_index: start,
        end_char_index: start + 1,
      }
const chunk = ({ place, title }: Cited): object =>
  place.startsWith('http')
    ? { web: { uri: place, title } }
    : { retrievedContext: { uri: place, title, text: 't' } }

const text = 'It is so.'
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const chatWhole = (message: object, more: object = {}): unknown => ({
  id: 'c',
  model: 'm',
  choices: [
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text, ...message } },
  ],
  usage,
  ...more,
})
const chatFrames = (deltas: readonly object[], more: object = {}): unknown[] => [
  { id: 'c', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: text } }] },
  ...deltas.map((delta) => ({ id: 'c', model: 'm', choices: [{ index: 0, delta }] })),
  {
    id: 'c',
    model: 'm',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    usage,
    ...more,
  },
  '[DONE]',
]
const item = (citations: readonly Cited[]): object => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: citations.map(annotation) }],
})
const grounding = (citations: readonly Cited[]): object => ({
  groundingMetadata: {
    groundingChunks: citations.map(chunk),
    groundingSupports: citations.map(({ start }, index) => ({
      segment: { startIndex: start, endIndex: start + 1 },
      groundingChunkIndices: [index],
    })),
  },
})

const vendors: readonly Vendor[] = [
  {
    name: 'openai responses',
    model: openai('m'),
    cites: 'both',
    hasTitles: true,
    whole: (citations) => ({ id: 'r', model: 'm', status: 'completed', output: [item(citations)] }),
    frames: (citations) => [
      { type: 'response.created', response: { id: 'r', model: 'm' } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg_1' },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: text },
      ...citations.map((one, annotation_index) => ({
        type: 'response.output_text.annotation.added',
        output_index: 0,
        content_index: 0,
        annotation_index,
        annotation: annotation(one),
      })),
      { type: 'response.output_item.done', output_index: 0, item: item(citations) },
      {
        type: 'response.completed',
        response: { id: 'r', model: 'm', status: 'completed', output: [item(citations)] },
      },
    ],
  },
  ...[openai('m', { api: 'chat' }), openrouter('x/y')].map((model): Vendor => ({
    name: `${model.provider.name} chat`,
    model,
    cites: 'pages',
    hasTitles: true,
    whole: (citations) => chatWhole({ annotations: citations.map(nested) }),
    frames: (citations) => chatFrames(citations.map((one) => ({ annotations: [nested(one)] }))),
  })),
  {
    name: 'xai',
    model: xai('grok-4'),
    cites: 'pages',
    hasTitles: false,
    whole: (citations) => chatWhole({}, { citations: citations.map(({ place }) => place) }),
    frames: (citations) => chatFrames([], { citations: citations.map(({ place }) => place) }),
  },
  {
    name: 'anthropic',
    model: anthropic('m'),
    cites: 'both',
    hasTitles: true,
    whole: (citations) => ({
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text, citations: citations.map(citation) }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
    frames: (citations) => [
      { type: 'message_start', message: { id: 'm', model: 'm', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...citations.map((one) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'citations_delta', citation: citation(one) },
      })),
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ],
  },
  {
    name: 'google',
    model: google('gemini-3-pro'),
    cites: 'both',
    hasTitles: true,
    whole: (citations) => ({
      candidates: [
        { content: { parts: [{ text }] }, finishReason: 'STOP', ...grounding(citations) },
      ],
    }),
    frames: (citations) => [
      { candidates: [{ content: { parts: [{ text }] } }] },
      { candidates: [{ content: { parts: [] }, finishReason: 'STOP', ...grounding(citations) }] },
    ],
  },
]

function configOf(answer: unknown, frames?: readonly unknown[]) {
  const body = frames
    ? frames
        .map((frame) => `data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`)
        .join('')
    : JSON.stringify(answer)
  const type = frames ? 'text/event-stream' : 'application/json'
  return {
    apiKey: 'key-0123456789',
    retryStrategy: new NoRetry(),
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  }
}

const generate = (model: ModelReference, answer: unknown): Promise<Turn> =>
  llm({ model, config: configOf(answer) }).generate('Hi')
const stream = (model: ModelReference, frames: readonly unknown[]): Promise<Turn> =>
  llm({ model, config: configOf(undefined, frames) }).stream('Hi').turn

const page = fc.constantFrom('https://a.example/1', 'https://a.example/2', 'http://b.example/')
const citations = fc.array(
  fc.record({
    place: fc.oneof(page, fc.constantFrom('file-1', 'gs://bucket/x.pdf')),
    title: fc.constantFrom('One', 'Two'),
    start: fc.nat(9),
  }),
  { maxLength: 6 },
)

describe.each(vendors)('$name', (vendor) => {
  const { model, cites, hasTitles, whole, frames } = vendor

  test('each source once, in order, with every original; a stream gives the same', async () => {
    await fc.assert(
      fc.asyncProperty(citations, async (drawn) => {
        const given = cites === 'pages' ? drawn.filter(isPage) : drawn
        const turn = await generate(model, whole(given))
        const places = [...new Set(given.map(({ place }) => place))]
        expect(turn.sources.map(({ url, id }) => url ?? id)).toEqual(places)
        for (const source of turn.sources) {
          const place = source.url ?? source.id!
          const own = given.filter((one) => one.place === place)
          expect(source.type).toBe(isPage(own[0]!) ? 'url' : 'document')
          expect(source.title).toBe(hasTitles ? own[0]!.title : undefined)
          // A chunk of Google comes with the places in the answer that it supports.
          expect(source.originals).toHaveLength(own.length * (model.provider === google ? 2 : 1))
        }
        expect((await stream(model, frames(given))).sources).toEqual(turn.sources)
        expect(JSON.parse(JSON.stringify(turn.sources))).toStrictEqual(turn.sources)
        expect(Object.isFrozen(turn.sources)).toBe(true)
      }),
      { ...runs, numRuns: 25 },
    )
  })

  test('an answer without citations has none', async () => {
    expect((await generate(model, whole([]))).sources).toEqual([])
  })

  test('citations of the wrong form are no sources, and do no harm', async () => {
    const wrong = { place: 7, title: null, start: 'x' } as unknown as Cited
    const broken = JSON.parse(
      JSON.stringify(whole([{ ...wrong, place: 'https://x.example' }])),
      (_, value) => (value === 'https://x.example' ? { deep: [] } : (value as unknown)),
    ) as unknown
    expect((await generate(model, broken)).sources).toEqual([])
  })
})

test('Mistral: references by position', async () => {
  const content = [
    { type: 'text', text: 'It is' },
    { type: 'reference', reference_ids: [0, 2] },
    { type: 'text', text: ' so.' },
  ]
  const expected: Source[] = [0, 2].map((id) => ({
    type: 'document',
    id: String(id),
    originals: [{ type: 'reference', reference_ids: [0, 2] }],
  }))
  const turn = await generate(mistral('m'), chatWhole({ content }))
  expect(turn.sources).toEqual(expected)
  expect(turn.response.text).toBe('It is so.')
  const streamed = await stream(mistral('m'), chatFrames([{ content: [content[1]] }]))
  expect(streamed.sources).toEqual(expected)
})

test('Anthropic: a document by its position, a search result by its source', async () => {
  const named = {
    type: 'char_location',
    document_index: 1,
    document_title: 'Report',
    file_id: null,
  }
  const found = { type: 'search_result_location', source: 'kb/7', title: 'Seven' }
  const answer = vendors[4]!.whole([]) as { content: { citations: unknown[] }[] }
  answer.content[0]!.citations = [named, found]
  expect((await generate(anthropic('m'), answer)).sources).toEqual([
    { type: 'document', id: '1', title: 'Report', originals: [named] },
    { type: 'document', id: 'kb/7', title: 'Seven', originals: [found] },
  ])
})

test('OpenAI: files that code wrote are cited, paths and parsed files are not', async () => {
  const container = {
    type: 'container_file_citation',
    container_id: 'c',
    file_id: 'f',
    filename: 'a.csv',
  }
  const output = [
    {
      ...item([]),
      content: [
        {
          type: 'output_text',
          text,
          annotations: [container, { type: 'file_path', file_id: 'g' }],
        },
      ],
    },
  ]
  const turn = await generate(openai('m'), { id: 'r', status: 'completed', output })
  expect(turn.sources).toEqual([
    { type: 'document', id: 'f', title: 'a.csv', originals: [container] },
  ])
  const parsed = { type: 'file', file: { hash: 'h', name: 'a.pdf', content: [] } }
  expect((await generate(openrouter('x/y'), chatWhole({ annotations: [parsed] }))).sources).toEqual(
    [],
  )
})

test('Google: citations of the training data', async () => {
  const cited = { startIndex: 0, endIndex: 4, uri: 'https://github.com/x/y', license: 'mit' }
  const answer = {
    candidates: [
      {
        content: { parts: [{ text }] },
        finishReason: 'STOP',
        citationMetadata: { citationSources: [cited, { startIndex: 1 }] },
      },
    ],
  }
  expect((await generate(google('gemini-3-pro'), answer)).sources).toEqual([
    { type: 'url', url: 'https://github.com/x/y', originals: [cited] },
  ])
})

test('the sources of every message of a turn, also behind a fallback', async () => {
  const cited = { place: 'https://a.example/1', title: 'One', start: 0 }
  const answers = [
    chatWhole({
      annotations: [nested(cited)],
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    }),
    chatWhole({
      annotations: [
        nested({ ...cited, start: 3 }),
        nested({ ...cited, place: 'https://b.example' }),
      ],
    }),
  ]
  const config = { ...configOf({}), fetch: async () => Response.json(answers.shift()) }
  const turn = await llm({
    model: fallback([{ model: openai('m', { api: 'chat' }), config }]),
    tools: [{ name: 'f', description: '', parameters: {}, run: () => 'ok' }],
  }).generate('Hi')
  expect(turn.sources).toMatchObject([
    {
      url: 'https://a.example/1',
      originals: [{ url_citation: { start_index: 0 } }, { url_citation: { start_index: 3 } }],
    },
    { url: 'https://b.example' },
  ])
})

test('the AI SDK: its sources become ours, and ours become its', async () => {
  const cited = { place: 'https://a.example/1', title: 'One', start: 0 }
  const ours = toAiSdk({
    model: openai('m', { api: 'chat' }),
    config: configOf(vendors[1]!.whole([cited])),
  })
  const { content } = await ours.doGenerate({ prompt: [] })
  const part = {
    type: 'source',
    sourceType: 'url',
    id: cited.place,
    url: cited.place,
    title: 'One',
  }
  expect(content.filter(({ type }) => type === 'source')).toEqual([part])
  const turn = await llm({ model: fromAiSdk(ours as never) }).generate('Hi')
  expect(turn.sources).toEqual([{ type: 'url', url: cited.place, title: 'One', originals: [part] }])
})

test('adding sources does not change the lists that were given', () => {
  const one: Source = Object.freeze({
    type: 'url',
    url: 'https://a',
    originals: Object.freeze([1]),
  })
  const list = Object.freeze([one])
  expect(addSources(list, [{ ...one, originals: [2] }])).toEqual([{ ...one, originals: [1, 2] }])
  expect(list).toEqual([{ type: 'url', url: 'https://a', originals: [1] }])
})
