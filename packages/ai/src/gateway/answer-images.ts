import type { JsonObject, JsonValue } from '@skein/base'
import type { ImageInstance, ImageResult } from '../image.ts'
import { imageSource } from '../wires/media.ts'
import { objectOf, textOf } from '../wires/read-json.ts'
import { requestError } from '../wires/wire-error.ts'
import type { WireReply } from './answer-wire.ts'
import { jsonReply } from './json-reply.ts'

interface ImageTask {
  /** Returns the model with a name; throws if there is none for this client. */
  readonly find: (name: string) => ImageInstance
  readonly signal: AbortSignal
  readonly createdAt: number
}

/**
 * Answers `POST /v1/images/generations`. All parameters but the model and the prompt go to the vendor under the
 * client's names; `response_format: 'url'` is refused, because images are not stored here.
 */
export async function answerImages(
  json: JsonValue,
  { find, signal, createdAt }: ImageTask,
): Promise<WireReply> {
  const { model: name, prompt, stream, response_format, ...params } = objectOf(json) ?? {}
  const invalidInput = (what: string, hint?: string): Error => requestError('gateway', what, hint)
  if (typeof name !== 'string') throw invalidInput('The field "model" is missing.')
  if (textOf(prompt) === undefined) throw invalidInput('The field "prompt" is not a text.')
  if (stream === true)
    throw invalidInput('Images are not streamed here.', 'Leave out "stream": true.')
  if (response_format !== undefined && response_format !== null && response_format !== 'b64_json')
    throw invalidInput(
      `The field "response_format" is ${JSON.stringify(response_format)}.`,
      'Images are answered as "b64_json"; the gateway stores none.',
    )
  const painter = find(name)
  const result = await painter.generate(String(prompt), { signal, params })
  return jsonReply({
    created: Math.floor(createdAt / 1000),
    data: result.images.map(({ image }) => dataOf(image)),
    usage: usageOf(result),
  })
}

function dataOf(image: ImageResult['images'][number]['image']): JsonObject {
  const source = imageSource(image)
  return source.url === undefined ? { b64_json: source.base64 } : { url: source.url }
}

function usageOf({ usage }: ImageResult): JsonObject | undefined {
  const { inputTokens, outputTokens, totalTokens } = usage ?? {}
  if (totalTokens === undefined) return undefined
  return {
    input_tokens: inputTokens ?? 0,
    output_tokens: outputTokens ?? 0,
    total_tokens: totalTokens,
    input_tokens_details: { text_tokens: inputTokens ?? 0, image_tokens: 0 },
  }
}
