import { linkAbort, type Clock, type JsonObject, systemClock } from '@skein/base'
import { AbortRace } from './contract/abort-race.ts'
import type { ModelReference, Params, ProviderConfig } from './contract/provider.ts'
import type { ImageBlock } from './contract/content.ts'
import { Image } from './media/image.ts'
import type { Middleware } from './contract/middleware.ts'
import { protectConfig } from './transport/config-secrets.ts'
import { ResultStream } from './turn/batch-reader.ts'
import { MiddlewareRun } from './turn/run-middleware.ts'
import { cancelledError, type ErrorOrigin, invalidRequest } from './contract/error.ts'

/** What the model can do (UPP §14.4). */
export interface ImageCapabilities {
  readonly generate: boolean
  readonly streaming: boolean
  readonly edit: boolean
  readonly maxImages?: number
}

/** One finished image. Providers return a plain block; callers get it as an `Image`. */
export interface GeneratedImage<Block extends ImageBlock = Image> {
  readonly image: Block
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

/** The usage of an image call, as far as the vendor reports it. */
export interface ImageUsage {
  readonly imagesGenerated?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly costUsd?: number
}

/** All images of a call (UPP §14.5). */
export interface ImageResult<Block extends ImageBlock = Image> {
  readonly images: readonly GeneratedImage<Block>[]
  readonly usage?: ImageUsage
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

/** One image request, as a provider gets it. */
export interface ImageRequest {
  readonly prompt: string
  /** The images to edit. `images` and `mask` are set only for `edit`. */
  readonly images?: readonly ImageBlock[]
  readonly mask?: ImageBlock
  readonly params: Params
  readonly config: ProviderConfig
  readonly signal: AbortSignal
}

/** One event of an image stream: a later event replaces a `preview`; an `image` is final. */
export type ImageStreamEvent<Block extends ImageBlock = Image> =
  | { readonly type: 'preview'; readonly index: number; readonly image: Block }
  | { readonly type: 'image'; readonly index: number; readonly image: GeneratedImage<Block> }
  | {
      readonly type: 'end'
      readonly usage?: ImageUsage
      readonly metadata?: Readonly<Record<string, JsonObject>>
    }

/** The image models of a provider. */
export interface ImageHandler {
  bind(reference: ModelReference): BoundImageModel
}

/** One image model of one vendor. */
export interface BoundImageModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: ImageCapabilities
  generate(request: ImageRequest): Promise<ImageResult<ImageBlock>>
  edit?(request: ImageRequest): Promise<ImageResult<ImageBlock>>
  stream?(request: ImageRequest): AsyncIterable<ImageStreamEvent<ImageBlock>>
}

/** The settings of an image instance: everything except its prompt (UPP §14.2). */
export interface ImageOptions {
  readonly model: ModelReference
  readonly config?: ProviderConfig
  /** Size, quality, number of images and the like; sent to the vendor unchanged. */
  readonly params?: Params
  readonly middleware?: readonly Middleware[]
  readonly clock?: Clock
}

/** The prompt of an image to generate. */
export type ImageInput = string | { readonly prompt: string }

/** The images to edit, and the prompt that describes the change. */
export interface ImageEditInput {
  readonly prompt: string
  /** The one image to edit; use `images` for several. */
  readonly image?: ImageBlock
  readonly images?: readonly ImageBlock[]
  /** The first image is changed where the mask is transparent. */
  readonly mask?: ImageBlock
}

/** Settings of one call. */
export interface ImageCallOptions {
  readonly signal?: AbortSignal
  /** Added to the params of the instance, for this call. */
  readonly params?: Params
}

/** A running image call: iterate it for previews and images, or wait for its `result`. */
export type ImageStream = ResultStream<ImageStreamEvent, ImageResult>

/** A model that generates images (UPP §14.3). Operations it does not support fail with INVALID_REQUEST. */
export interface ImageInstance {
  readonly model: BoundImageModel
  readonly capabilities: ImageCapabilities
  generate(input: ImageInput, options?: ImageCallOptions): Promise<ImageResult>
  /** Streams previews while the image is generated; `result` contains the finished images. */
  stream(input: ImageInput, options?: ImageCallOptions): ImageStream
  edit(input: ImageEditInput, options?: ImageCallOptions): Promise<ImageResult>
}

/**
 * Binds an image model to its settings.
 *
 *     const painter = image({ model: openai('gpt-image-1'), params: { size: '1024x1024' } })
 *     const { images } = await painter.generate('A sunset over mountains')
 *     await writeFile('sunset.png', images[0].image.toBytes())
 */
export function image(options: ImageOptions): ImageInstance {
  return new ImageMaker(options)
}

function toImage(block: ImageBlock): Image {
  return block instanceof Image ? block : Image.fromBlock(block)
}

/** The fields of a request that a call gives. */
type ImageFields = Pick<ImageRequest, 'prompt' | 'images' | 'mask'> &
  Pick<ImageCallOptions, 'params'>

/** The operations by capability, in the words for a model that lacks it. */
const operations = {
  generate: 'make an image from a prompt',
  edit: 'edit images',
  streaming: 'stream previews',
}
type Operation = keyof typeof operations

function promptOf(input: ImageInput): string {
  return typeof input === 'string' ? input : input?.prompt // `#check` refuses other values
}

function toGenerated(generated: GeneratedImage<ImageBlock>): GeneratedImage {
  return { ...generated, image: toImage(generated.image) }
}

class ImageMaker implements ImageInstance {
  readonly model: BoundImageModel
  readonly capabilities: ImageCapabilities
  readonly #options: ImageOptions
  readonly #config: ProviderConfig
  readonly #origin: ErrorOrigin

  constructor(options: ImageOptions) {
    const provider = options?.model?.provider
    this.#origin = { provider: provider?.name ?? 'skein', modality: 'image' }
    const handler = provider?.handlers?.image
    if (!handler) {
      const hint = 'Use a model of a provider that has them, e.g. openai or google.'
      throw invalidRequest(`${this.#origin.provider} makes no images.`, this.#origin, hint)
    }
    this.model = handler.bind(options.model)
    this.capabilities = Object.freeze({ ...this.model.capabilities })
    this.#options = options
    this.#config = protectConfig(options.config)
  }

  async generate(input: ImageInput, options?: ImageCallOptions): Promise<ImageResult> {
    return this.#start('generate', { prompt: promptOf(input) }, options).result
  }

  async edit(input: ImageEditInput, options?: ImageCallOptions): Promise<ImageResult> {
    const { image: one, mask } = input ?? {}
    const images = input?.images ?? (one && [one])
    return this.#start('edit', { prompt: promptOf(input), images, mask }, options).result
  }

  stream(input: ImageInput, options?: ImageCallOptions): ImageStream {
    const fields = { prompt: promptOf(input) }
    const stream = this.#start('streaming', fields, options)
    try {
      this.#check('streaming', fields)
    } catch (error) {
      void stream.result // the middleware sees it too; the caller gets the error immediately
      throw error
    }
    return stream
  }

  #start(
    operation: Operation,
    fields: ImageFields,
    { signal, params }: ImageCallOptions = {},
  ): ImageStream {
    const controller = new AbortController()
    const steps = this.#run(operation, { ...fields, params }, signal, controller)
    return new ResultStream(steps, controller, this.#origin)
  }

  /** Runs a call of any kind; without streaming, it yields nothing and the caller gets the result. */
  async *#run(
    operation: Operation,
    fields: ImageFields,
    given: AbortSignal | undefined,
    controller: AbortController,
  ): AsyncGenerator<ImageStreamEvent, ImageResult> {
    const { model } = this
    const unlink = linkAbort([given], controller)
    const { signal } = controller
    const run = this.#middlewareRun(fields, signal, operation === 'streaming')
    const request = (): ImageRequest => run.context.request as ImageRequest // of an image call
    const race = new AbortRace(signal, () => cancelledError(signal, this.#origin))
    try {
      await race.run(run.start(() => this.#check(operation, request())))
      race.throwIfAborted()
      const result =
        operation === 'streaming'
          ? yield* readStream(race.each(model.stream!(request())))
          : await race.run(model[operation]!(request()))
      const images = result.images.map(toGenerated)
      return await race.run(run.end({ ...result, images }))
    } catch (error) {
      throw await run.fail(error)
    } finally {
      race.dispose()
      unlink()
    }
  }

  #middlewareRun(fields: ImageFields, signal: AbortSignal, streaming: boolean): MiddlewareRun {
    const { params = {}, middleware = [], clock = systemClock } = this.#options
    const { model } = this
    const own = { ...params, ...fields.params }
    const request: ImageRequest = { ...fields, params: own, config: this.#config, signal }
    return new MiddlewareRun(middleware, { modality: 'image', model, streaming, request, clock })
  }

  /** Throws if the model cannot do what is asked, or if the request lacks what it needs. */
  #check(operation: Operation, { prompt, images }: ImageFields): void {
    const { model, capabilities } = this
    const refuse = (message: string, hint: string): never => {
      throw invalidRequest(message, this.#origin, hint)
    }
    if (!capabilities[operation] || !model[operation === 'streaming' ? 'stream' : operation])
      refuse(
        `${this.#origin.provider} ${model.modelId} cannot ${operations[operation]}.`,
        'See `capabilities` of the instance.',
      )
    if (typeof prompt !== 'string')
      refuse(`The prompt is ${typeof prompt}.`, 'Pass it as a string.')
    if (operation === 'edit' && !images?.length)
      refuse('There is no image to edit.', 'Pass image or images.')
  }
}

/** Yields the events of a stream and returns its result. */
async function* readStream(
  events: AsyncIterable<ImageStreamEvent<ImageBlock>>,
): AsyncGenerator<ImageStreamEvent, ImageResult> {
  const images: GeneratedImage[] = []
  let end: ImageStreamEvent & { type: 'end' } = { type: 'end' }
  for await (const event of events) {
    if (event.type === 'end') yield (end = event)
    else if (event.type === 'preview') yield { ...event, image: toImage(event.image) }
    else yield { ...event, image: (images[event.index] = toGenerated(event.image)) }
  }
  const { usage, metadata } = end
  return { images, usage, metadata }
}
