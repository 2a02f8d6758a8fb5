/** Every form of call of every modality, against a vendor whose behaviour the test decides. */
import type { Clock } from '@skein/base'
import {
  createProvider,
  embedding,
  image,
  Image,
  llm,
  UserMessage,
  type AnyRequest,
  type Middleware,
  type Provider,
  type StreamEvent,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { png } from './stub.ts'

export const dot: Image = Image.fromBase64(png, 'image/png')

/** What the vendor does when it is asked, the same for all modalities. */
type Vendor = (request: AnyRequest) => void | Promise<void>

const text: readonly StreamEvent[] = [
  { type: 'message_start', index: 0, delta: {} },
  { type: 'content_block_start', index: 0, delta: { block: 'text' } },
  { type: 'text_delta', index: 0, delta: { text: 'Hello' } },
  { type: 'content_block_stop', index: 0, delta: {} },
  { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage: zeroUsage } },
]

function providerOf(vendor: Vendor): Provider {
  const capabilities = {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: true,
    documentInput: true,
    videoInput: true,
    audioInput: true,
  }
  const made = { images: [{ image: dot.toBlock() }] }
  const makeImage = async (request: AnyRequest) => {
    await vendor(request)
    return made
  }
  return createProvider({
    name: 'every',
    llm: {
      capabilities,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'every',
        capabilities,
        complete: async (request) => {
          await vendor(request)
          return text
        },
        async *stream(request) {
          await vendor(request)
          yield text
        },
      }),
    },
    embedding: {
      maxBatchSize: 10,
      imageInput: false,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'every',
        embed: async (request) => {
          await vendor(request)
          const embeddings = request.inputs.map((_, index) => ({
            vector: [1],
            dimensions: 1,
            index,
          }))
          return { embeddings, usage: { totalTokens: 1 } }
        },
      }),
    },
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: 'every',
        capabilities: { generate: true, streaming: true, edit: true },
        generate: makeImage,
        edit: makeImage,
        async *stream(request) {
          await vendor(request)
          yield { type: 'image', index: 0, image: { image: dot.toBlock() } }
          yield { type: 'end' }
        },
      }),
    },
  })
}

export interface Setup {
  readonly vendor?: Vendor
  readonly middleware: readonly Middleware[]
  readonly clock?: Clock
  readonly signal?: AbortSignal
}

export type Form = (setup: Setup) => Promise<unknown>

async function finish<T>(steps: AsyncGenerator<unknown, T>): Promise<T> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

const model = ({ vendor = () => {} }: Setup) => providerOf(vendor)('Model-1')
const optionsOf = ({ middleware, clock }: Setup) => ({ middleware, ...(clock && { clock }) })
const signalOf = ({ signal }: Setup) => (signal ? { signal } : {})
const talker = (setup: Setup) =>
  llm({ model: model(setup), ...optionsOf(setup), ...signalOf(setup) })
const embedder = (setup: Setup) => embedding({ model: model(setup), ...optionsOf(setup) })
const painter = (setup: Setup) => image({ model: model(setup), ...optionsOf(setup) })

/** The forms, by modality and by whether it streams. */
export const forms: readonly (readonly [string, 'llm' | 'embedding' | 'image', boolean, Form])[] = [
  ['generate', 'llm', false, (setup) => talker(setup).generate('x')],
  ['stream', 'llm', true, (setup) => talker(setup).stream('x').turn],
  [
    'stream, read',
    'llm',
    true,
    async (setup) => {
      const stream = talker(setup).stream('x')
      for await (const _ of stream);
      return stream.turn
    },
  ],
  ['infer', 'llm', true, (setup) => finish(talker(setup).infer([new UserMessage('x')]))],
  [
    'infer without streaming',
    'llm',
    false,
    (setup) => finish(talker(setup).infer([new UserMessage('x')], { streaming: false })),
  ],
  ['embed', 'embedding', false, (setup) => embedder(setup).embed('x', signalOf(setup))],
  [
    'embed in chunks',
    'embedding',
    true,
    (setup) => embedder(setup).embed('x', { chunked: true, ...signalOf(setup) }).result,
  ],
  ['make an image', 'image', false, (setup) => painter(setup).generate('x', signalOf(setup))],
  [
    'edit an image',
    'image',
    false,
    (setup) => painter(setup).edit({ prompt: 'x', image: dot }, signalOf(setup)),
  ],
  ['stream an image', 'image', true, (setup) => painter(setup).stream('x', signalOf(setup)).result],
]
