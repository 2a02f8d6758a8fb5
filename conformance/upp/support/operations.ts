/** Every way in which a shipped vendor is called: each goes over the wire once and answers. */
import { embedding, image, llm, type Provider, type ProviderConfig } from '@skein/ai'
import { embeddingVendors, imageVendors, llmVendors } from './vendors.ts'

export interface Operation {
  readonly name: string
  readonly modality: 'llm' | 'embedding' | 'image'
  readonly vendor: string
  readonly provider: Provider
  readonly isStream: boolean
  /** Gives something that shows that the answer was read. */
  run(config: ProviderConfig, signal?: AbortSignal): Promise<unknown>
}

interface Kind {
  readonly verb: string
  readonly modality: Operation['modality']
  readonly run: (
    provider: Provider,
    config: ProviderConfig,
    signal: AbortSignal | undefined,
  ) => Promise<unknown>
}

const generate: Kind = {
  verb: 'generate',
  modality: 'llm',
  run: async (provider, config, signal) => {
    const model = llm({ model: provider('m'), config, ...(signal && { signal }) })
    return (await model.generate('Hi')).response.text
  },
}

const stream: Kind = {
  verb: 'stream',
  modality: 'llm',
  run: async (provider, config, signal) => {
    const model = llm({ model: provider('m'), config, ...(signal && { signal }) })
    let text = ''
    for await (const event of model.stream('Hi')) {
      if (event.type === 'text_delta') text += event.delta.text
    }
    return text
  },
}

const embed: Kind = {
  verb: 'embed',
  modality: 'embedding',
  run: async (provider, config, signal) => {
    const model = embedding({ model: provider('m'), config })
    const { embeddings } = await model.embed(['Hello'], signal && { signal })
    return embeddings[0]?.vector
  },
}

const makeImage: Kind = {
  verb: 'make an image',
  modality: 'image',
  run: async (provider, config, signal) => {
    const { images } = await image({ model: provider('m'), config }).generate('A dot', {
      ...(signal && { signal }),
    })
    return images[0]?.image.toBytes().length
  },
}

const streamImage: Kind = {
  verb: 'stream an image',
  modality: 'image',
  run: async (provider, config, signal) => {
    const result = image({ model: provider('m'), config }).stream('A dot', {
      ...(signal && { signal }),
    })
    return (await result.result).images[0]?.image.toBytes().length
  },
}

function operationsOf(vendor: string, provider: Provider, kinds: readonly Kind[]): Operation[] {
  return kinds.map(({ verb, modality, run }) => ({
    name: `${vendor}: ${verb}`,
    modality,
    vendor,
    provider,
    isStream: verb.startsWith('stream'),
    run: (config, signal) => run(provider, config, signal),
  }))
}

export const operations: readonly Operation[] = [
  ...llmVendors.flatMap(({ name, provider }) => operationsOf(name, provider, [generate, stream])),
  ...embeddingVendors.flatMap(({ name, provider }) => operationsOf(name, provider, [embed])),
  ...imageVendors.flatMap(({ name, provider }) => {
    const { streaming } = image({ model: provider('m') }).capabilities
    return operationsOf(name, provider, streaming ? [makeImage, streamImage] : [makeImage])
  }),
]

/** The result of each operation when the stub answers "hello". */
export const expectedOf = ({ modality }: Operation): unknown =>
  modality === 'llm' ? 'Hello' : modality === 'embedding' ? [5, 2.5] : 70
