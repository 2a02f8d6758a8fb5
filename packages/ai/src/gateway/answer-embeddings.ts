import { encodeBase64, type JsonValue } from '@skein/base'
import type { UPPError } from '../contract/error.ts'
import type { EmbeddingInstance } from '../embedding.ts'
import { objectOf } from '../wires/read-json.ts'
import { requestError } from '../wires/wire-error.ts'
import type { WireReply } from './answer-wire.ts'
import { jsonReply, withDropped } from './json-reply.ts'

/** Answers `POST /v1/embeddings`; `find` returns the model with a name. */
export async function answerEmbeddings(
  json: JsonValue,
  find: (name: string) => EmbeddingInstance,
  signal: AbortSignal,
): Promise<WireReply> {
  const { model: name, input, dimensions, encoding_format, ...others } = objectOf(json) ?? {}
  const invalidInput = (what: string, hint?: string): UPPError =>
    requestError('gateway', what, hint)
  if (typeof name !== 'string') throw invalidInput('The field "model" is missing.')
  const inputs: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (inputs.length === 0 || !inputs.every((one) => typeof one === 'string' && one !== ''))
    throw invalidInput(
      'The field "input" is not a text or a list of texts.',
      'Lists of tokens are not accepted: their numbers mean something to one model only.',
    )
  if (encoding_format !== undefined && encoding_format !== 'float' && encoding_format !== 'base64')
    throw invalidInput('The field "encoding_format" is neither "float" nor "base64".')
  if (dimensions !== undefined && !(Number.isInteger(dimensions) && Number(dimensions) > 0))
    throw invalidInput('The field "dimensions" is not a whole number above 0.')
  const embedder = find(name)
  const size = embedder.model.provider === 'google' ? 'outputDimensionality' : 'dimensions'
  const { embeddings, usage } = await embedder.embed(inputs as readonly string[], {
    signal,
    params: dimensions === undefined ? {} : { [size]: dimensions },
  })
  const reply = jsonReply({
    object: 'list',
    data: embeddings.map(({ vector, index }) => ({
      object: 'embedding',
      index,
      embedding: encoding_format === 'base64' ? floatsInBase64(vector) : vector,
    })),
    model: name,
    usage: { prompt_tokens: usage.totalTokens, total_tokens: usage.totalTokens },
  })
  return withDropped(reply, Object.keys(others))
}

/** Writes 32-bit floats, little endian, as OpenAI's `encoding_format: base64` has them. */
function floatsInBase64(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4))
  vector.forEach((number, index) => view.setFloat32(index * 4, number, true))
  return encodeBase64(new Uint8Array(view.buffer))
}
