import { writeOllama } from './settings.ts'
import type { Wire } from '../wire.ts'
import { decodeError } from './error.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { OllamaDecoder } from './stream.ts'
import { API, type OllamaDialect } from './types.ts'

/** Ollama's `/api/chat` for clients: writes requests and reads answers. */
export const ollamaChat: Wire<OllamaDialect> = {
  name: API,
  framing: 'ndjson',
  encodeRequest,
  refuse,
  writeSettings: writeOllama,
  decodeResponse,
  createDecoder: (context) => new OllamaDecoder(context),
  decodeError,
}
