import { isInPieces } from '../../transport/transport.ts'
import type { EncodedRequest, Wire } from '../wire.ts'
import type { AnthropicDialect } from './types.ts'
import { anthropicMessages } from './wire.ts'

/** The version of the format on Google Cloud, which the body names instead of a header. */
const VERSION = 'vertex-2023-10-16'

/** Anthropic's Messages as Google Cloud publishes them: the model and the mode are in the address. */
export const vertexMessages: Wire<AnthropicDialect> = {
  ...anthropicMessages,
  encodeRequest(request, target, mode): EncodedRequest {
    const params = { anthropic_version: VERSION, ...request.params, model: undefined }
    const encoded = anthropicMessages.encodeRequest({ ...request, params }, target, mode)
    const { warnings, unwrap } = encoded
    const verb = mode === 'stream' ? 'streamRawPredict' : 'rawPredict'
    const path = `/models/${encodeURIComponent(target.modelId)}:${verb}`
    const rest = { path, warnings, unwrap }
    if (!isInPieces(encoded)) return { ...rest, body: encoded.body }
    return {
      ...rest,
      pieces: encoded.pieces,
      get body() {
        return encoded.body
      },
    }
  },
}
