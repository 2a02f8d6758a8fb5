import { writeGoogle } from './settings.ts'
import type { Wire } from '../wire.ts'
import { decodeError } from './error.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { GoogleDecoder } from './stream.ts'
import { API, type GoogleDialect } from './types.ts'

/** Google's `generateContent` and `streamGenerateContent` for clients: writes requests and reads answers. */
export const googleGenerate: Wire<GoogleDialect> = {
  name: API,
  framing: 'sse',
  encodeRequest,
  refuse,
  writeSettings: writeGoogle,
  decodeResponse,
  createDecoder: (context) => new GoogleDecoder(context),
  decodeError,
}
