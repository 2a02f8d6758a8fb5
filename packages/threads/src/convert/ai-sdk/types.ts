/**
 * The UI messages and stream chunks of the Vercel AI SDK 7, as structural types: values of these types are
 * accepted where the `ai` package requires its own `UIMessage` and `UIMessageChunk`, without importing it.
 */

/** JSON as the AI SDK types it. */
export type UIJson = null | string | number | boolean | UIJson[] | UIJsonObject

/** A JSON object as the AI SDK types it. */
export interface UIJsonObject {
  [key: string]: UIJson | undefined
}

/** Data by provider name. Ours is under `threadprotocol`. */
export type UIProviderMetadata = Record<string, UIJsonObject>

/** A message in the form of the AI SDK's client. */
export interface UIMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  metadata?: unknown
  parts: UIMessagePart[]
}

/** Every part of a UI message. */
export type UIMessagePart =
  | TextUIPart
  | ReasoningUIPart
  | CustomUIPart
  | FileUIPart
  | ReasoningFileUIPart
  | SourceUrlUIPart
  | SourceDocumentUIPart
  | SteeringMessageUIPart
  | StepStartUIPart
  | DataUIPart
  | ToolUIPart

/** Text that is shown. */
export interface TextUIPart {
  type: 'text'
  text: string
  state?: 'streaming' | 'done'
  citations?: Citation[]
  providerMetadata?: UIProviderMetadata
}

/** The model's reasoning, as far as it is shown. */
export interface ReasoningUIPart {
  type: 'reasoning'
  id?: string
  text: string
  state?: 'streaming' | 'done'
  providerMetadata?: UIProviderMetadata
}

/** A provider's own part, identified by its kind alone. */
export interface CustomUIPart {
  type: 'custom'
  kind: `${string}.${string}`
  providerMetadata?: UIProviderMetadata
}

/** A file by URL; bytes are given as a `data:` URL. */
export interface FileUIPart {
  type: 'file'
  mediaType: string
  url: string
  filename?: string
  providerReference?: Record<string, string>
  providerMetadata?: UIProviderMetadata
}

/** A file that the model created during reasoning. */
export interface ReasoningFileUIPart {
  type: 'reasoning-file'
  mediaType: string
  url: string
  providerMetadata?: UIProviderMetadata
}

/** A web page that the answer is based on. */
export interface SourceUrlUIPart {
  type: 'source-url'
  sourceId: string
  url: string
  title?: string
  providerMetadata?: UIProviderMetadata
}

/** A document that the answer is based on. */
export interface SourceDocumentUIPart {
  type: 'source-document'
  sourceId: string
  mediaType: string
  title: string
  filename?: string
  providerMetadata?: UIProviderMetadata
}

/** A message that a person sent during a run. */
export interface SteeringMessageUIPart {
  type: 'steering-message'
  id: string
  parts: (TextUIPart | FileUIPart)[]
}

/** The boundary between two model calls. */
export interface StepStartUIPart {
  type: 'step-start'
}

/** Application data under a name that begins with `data-`. */
export interface DataUIPart {
  type: `data-${string}`
  id?: string
  data: unknown
}

/** A source that a text cites. */
export interface Citation {
  source: CitedSource<SourceUrlUIPart, 'url'> | CitedSource<SourceDocumentUIPart, 'document'>
  startIndex?: number
  endIndex?: number
  citedText?: string
}

type CitedSource<Part, Type> = { type: 'source'; sourceType: Type; id: string } & Omit<
  Part,
  'type' | 'sourceId'
>

/** An approval: the question to a person, and the answer. */
interface ApprovalFields {
  id: string
  descriptor?: unknown
  requestReason?: string
  isAutomatic?: boolean
  signature?: string
  inputSchemaInput?: unknown
}

type ToolState =
  | {
      state: 'input-streaming'
      input?: unknown
      rawInput?: string
      inputEncoding?: 'json' | 'text'
      callProviderMetadata?: UIProviderMetadata
    }
  | { state: 'input-available'; input: unknown; callProviderMetadata?: UIProviderMetadata }
  | {
      state: 'approval-requested'
      input: unknown
      callProviderMetadata?: UIProviderMetadata
      approval: ApprovalFields
    }
  | {
      state: 'approval-responded'
      input: unknown
      callProviderMetadata?: UIProviderMetadata
      approval: ApprovalFields & { approved: boolean; reason?: string }
    }
  | {
      state: 'output-available'
      input: unknown
      output: unknown
      preliminary?: boolean
      callProviderMetadata?: UIProviderMetadata
      resultProviderMetadata?: UIProviderMetadata
      approval?: ApprovalFields & { approved: true; reason?: string }
    }
  | {
      state: 'output-error'
      input: unknown
      rawInput?: unknown
      errorText: string
      callProviderMetadata?: UIProviderMetadata
      resultProviderMetadata?: UIProviderMetadata
      approval?: ApprovalFields & { approved: true; reason?: string }
    }
  | {
      state: 'output-denied'
      input: unknown
      callProviderMetadata?: UIProviderMetadata
      approval: ApprovalFields & { approved: false; reason?: string }
    }

interface ToolFields {
  toolCallId: string
  title?: string
  toolMetadata?: UIJsonObject
  providerExecuted?: boolean
}

/** A call of a tool whose name is in the part's type. */
export type StaticToolUIPart = { type: `tool-${string}` } & ToolFields & ToolState

/** A call of a tool that the client has no type for; its name is in `toolName`. */
export type DynamicToolUIPart = {
  type: 'dynamic-tool'
  toolName: string
  dynamic?: false
} & ToolFields &
  ToolState

/** A tool call and its outcome. */
export type ToolUIPart = StaticToolUIPart | DynamicToolUIPart

/** A tool part while it is being built, with the fields of every state; a finished one has those of its state. */
export interface OpenToolPart {
  type: string
  toolName?: string
  toolCallId: string
  state: ToolUIPart['state']
  title?: string | undefined
  toolMetadata?: UIJsonObject | undefined
  providerExecuted?: boolean | undefined
  input?: unknown
  rawInput?: unknown
  inputEncoding?: 'json' | 'text'
  output?: unknown
  errorText?: string | undefined
  preliminary?: boolean | undefined
  callProviderMetadata?: UIProviderMetadata
  resultProviderMetadata?: UIProviderMetadata
  approval?: ApprovalFields & { approved?: boolean; reason?: string }
}

/** Why a stream ended, in the words of the AI SDK. */
export type UIFinishReason =
  'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'interrupted' | 'other'

interface CallChunkFields extends ResultChunkFields {
  toolName: string
  title?: string
}

interface ResultChunkFields {
  toolCallId: string
  providerExecuted?: boolean
  providerMetadata?: UIProviderMetadata
  toolMetadata?: UIJsonObject
  dynamic?: boolean
}

/** One chunk of a UI message stream: every chunk type of `ai` 7.0.169. */
export type UIMessageChunk =
  | { type: 'start'; messageId?: string; messageMetadata?: unknown }
  | { type: 'start-step' }
  | { type: 'finish-step' }
  | { type: 'reset-step' }
  | { type: 'text-start'; id: string; providerMetadata?: UIProviderMetadata }
  | { type: 'text-delta'; id: string; delta: string; providerMetadata?: UIProviderMetadata }
  | { type: 'text-end'; id: string; citations?: Citation[]; providerMetadata?: UIProviderMetadata }
  | { type: 'reasoning-start'; id: string; providerMetadata?: UIProviderMetadata }
  | { type: 'reasoning-delta'; id: string; delta: string; providerMetadata?: UIProviderMetadata }
  | { type: 'reasoning-end'; id: string; providerMetadata?: UIProviderMetadata }
  | { type: 'custom'; kind: `${string}.${string}`; providerMetadata?: UIProviderMetadata }
  | {
      type: 'file' | 'reasoning-file'
      url: string
      mediaType: string
      providerMetadata?: UIProviderMetadata
    }
  | SourceUrlUIPart
  | SourceDocumentUIPart
  | ({ type: 'tool-input-start'; inputEncoding?: 'json' | 'text' } & CallChunkFields)
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | ({ type: 'tool-input-available'; input: unknown } & CallChunkFields)
  | ({ type: 'tool-input-error'; input: unknown; errorText: string } & CallChunkFields)
  | {
      type: 'tool-approval-request'
      approvalId: string
      toolCallId: string
      approvalDescriptor?: unknown
      inputSchemaInput?: unknown
      reason?: string
      isAutomatic?: boolean
      signature?: string
    }
  | {
      type: 'tool-approval-response'
      approvalId: string
      approved: boolean
      reason?: string
      providerExecuted?: boolean
      providerMetadata?: UIProviderMetadata
    }
  | ({ type: 'tool-output-available'; output: unknown; preliminary?: boolean } & ResultChunkFields)
  | ({ type: 'tool-output-error'; errorText: string } & ResultChunkFields)
  | { type: 'tool-output-denied'; toolCallId: string }
  | { type: 'steering-message'; id: string; parts: (TextUIPart | FileUIPart)[] }
  | { type: `data-${string}`; id?: string; data: unknown; transient?: boolean }
  | { type: 'message-metadata'; messageMetadata: unknown }
  | { type: 'finish'; finishReason?: UIFinishReason; messageMetadata?: unknown }
  | { type: 'abort'; reason?: string }
  | { type: 'error'; errorText: string }
