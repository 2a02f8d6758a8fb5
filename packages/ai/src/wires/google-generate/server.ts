import { readRequest } from '../wire-error.ts'
import type { WireServer } from '../wire-server.ts'
import { encodeError } from './server-error.ts'
import { decodeRequest } from './server-request.ts'
import { encodeResponse, GoogleEncoder } from './server-response.ts'
import { API } from './types.ts'

/** `generateContent` and `streamGenerateContent?alt=sse` served: one candidate per answer. */
export const googleGenerateServer: WireServer = {
  name: API,
  decodeRequest: (body, route) => readRequest('google', () => decodeRequest(body, route)),
  encodeResponse,
  createEncoder: (context) => new GoogleEncoder(context),
  encodeError,
}
