import type { Wire } from '../wire.ts'
import { decodeError } from './error.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { writeInteractions } from './settings.ts'
import { InteractionsDecoder } from './stream.ts'
import { API, type InteractionsDialect } from './types.ts'

/** Google's Interactions for clients: writes requests and reads answers. No state of the vendor is used. */
export const googleInteractions: Wire<InteractionsDialect> = {
  name: API,
  framing: 'sse',
  encodeRequest,
  refuse,
  writeSettings: writeInteractions,
  decodeResponse,
  createDecoder: (context) => new InteractionsDecoder(context),
  decodeError,
}
