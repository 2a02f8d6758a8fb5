/** The requests that every vendor's golden bodies are written for. The model id is always `m`. */
import type { JsonObject } from '@skein/base'
import type { LLMOptions, Message, UserContent } from '@skein/ai'
import { AssistantMessage, ToolResultMessage, UserMessage } from '@skein/ai'

export interface StandardRequest {
  readonly options: Omit<LLMOptions, 'model' | 'config'>
  readonly history: readonly Message[]
  readonly input: string | UserMessage
}

export const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { $ref: '#/$defs/city' } },
    $defs: { city: { type: 'string' } },
  },
  run: ({ city }: { city: string }): string => `Rain in ${city}`,
}

/** Meets the conditions of every vendor's strict mode. */
export const person: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
  additionalProperties: false,
}

const bytes = new Uint8Array([1, 2])

type BlockName =
  | 'imageBase64'
  | 'imageBytes'
  | 'imageUrl'
  | 'documentBase64'
  | 'documentUrl'
  | 'documentText'
  | 'audio'
  | 'video'

export const blocks: Readonly<Record<BlockName, UserContent>> = {
  imageBase64: { type: 'image', source: { type: 'base64', data: 'AQI=' }, mimeType: 'image/png' },
  imageBytes: { type: 'image', source: { type: 'bytes', data: bytes }, mimeType: 'image/png' },
  imageUrl: {
    type: 'image',
    source: { type: 'url', url: 'https://x.test/a.png' },
    mimeType: 'image/png',
  },
  documentBase64: {
    type: 'document',
    source: { type: 'base64', data: 'AQI=' },
    mimeType: 'application/pdf',
    title: 'a.pdf',
  },
  documentUrl: {
    type: 'document',
    source: { type: 'url', url: 'https://x.test/a.pdf' },
    mimeType: 'application/pdf',
  },
  documentText: {
    type: 'document',
    source: { type: 'text', data: 'Once.' },
    mimeType: 'text/plain',
  },
  audio: { type: 'audio', data: bytes, mimeType: 'audio/wav' },
  video: { type: 'video', data: bytes, mimeType: 'video/mp4' },
}

const ask = (input: string | readonly UserContent[], options: object = {}): StandardRequest => ({
  options,
  history: [],
  input: typeof input === 'string' ? input : new UserMessage(input),
})

/** Two calls in one message and their results, one of them an error. */
const answered: readonly Message[] = [
  new UserMessage('Weather?'),
  new AssistantMessage('Let me see.', [
    { toolCallId: 'callOslo1', toolName: 'weather', arguments: { city: 'Oslo' } },
    { toolCallId: 'callRome2', toolName: 'weather', arguments: { city: 'Rome' } },
  ]),
  new ToolResultMessage([
    { toolCallId: 'callOslo1', toolName: 'weather', result: { sky: 'grey' } },
    { toolCallId: 'callRome2', toolName: 'weather', result: 'No data.', isError: true },
  ]),
]

export type RequestName =
  'text' | 'system' | 'params' | 'tools' | 'toolResults' | 'structure' | BlockName

export const requests: Readonly<Record<RequestName, StandardRequest>> = {
  text: ask('Hello'),
  system: ask('Hello', { system: 'Be brief.' }),
  params: ask('Hello', { params: { temperature: 0.5, unknown_key: { deep: [1, null] } } }),
  tools: ask('Weather?', { tools: [weather] }),
  toolResults: { options: {}, history: answered, input: 'And tomorrow?' },
  structure: ask('Who?', { structure: person }),
  imageBase64: ask([{ type: 'text', text: 'What is it?' }, blocks.imageBase64]),
  imageBytes: ask([blocks.imageBytes]),
  imageUrl: ask([blocks.imageUrl]),
  documentBase64: ask([blocks.documentBase64]),
  documentUrl: ask([blocks.documentUrl]),
  documentText: ask([blocks.documentText]),
  audio: ask([blocks.audio]),
  video: ask([blocks.video]),
}
