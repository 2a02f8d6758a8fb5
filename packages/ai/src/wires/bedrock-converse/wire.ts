import type { Wire } from '../wire.ts'
import { decodeError } from './error.ts'
import { createFrames } from './frames.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { writeBedrock } from './settings.ts'
import { BedrockDecoder } from './stream.ts'
import { API, type BedrockDialect } from './types.ts'

/** Converse and ConverseStream of Amazon Bedrock for clients: writes requests and reads answers. */
export const bedrockConverse: Wire<BedrockDialect> = {
  name: API,
  framing: 'binary',
  createFrames,
  encodeRequest,
  refuse,
  writeSettings: writeBedrock,
  decodeResponse,
  createDecoder: (context) => new BedrockDecoder(context),
  decodeError,
}
