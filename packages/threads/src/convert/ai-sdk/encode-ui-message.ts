import type { FinishReason, Thread } from '../../document/thread.ts'
import { isToolPart } from './assemble-tools.ts'
import { toUIMessages, type ToUIMessagesOptions } from './to-ui-messages.ts'
import type {
  DataUIPart,
  OpenToolPart,
  UIFinishReason,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './types.ts'

/** Settings of `encodeUIMessage`: the finish reason, which a stream contains but a message does not. */
export interface EncodeUIMessageOptions {
  readonly finishReason?: UIFinishReason | undefined
}

/**
 * Returns the chunks from which the client builds exactly this message: one response, from `start` to
 * `finish`.
 */
export function* encodeUIMessage(
  message: UIMessage,
  { finishReason }: EncodeUIMessageOptions = {},
): Generator<UIMessageChunk, void, undefined> {
  const messageMetadata = message.metadata != null ? { messageMetadata: message.metadata } : {}
  yield { type: 'start', messageId: message.id, ...messageMetadata }
  let isStepOpen = false
  for (const [index, part] of message.parts.entries()) {
    if (part.type === 'step-start') {
      if (isStepOpen) yield { type: 'finish-step' }
      isStepOpen = true
      yield { type: 'start-step' }
    } else {
      yield* encodePart(part, `p${index}`)
    }
  }
  if (isStepOpen) yield { type: 'finish-step' }
  // The client redraws when metadata arrives, but not for a step boundary alone. So for a message that ends
  // with a step boundary, the metadata is sent a second time, which changes nothing else.
  const wake = message.parts.at(-1)?.type === 'step-start' ? messageMetadata : {}
  yield { type: 'finish', finishReason, ...wake }
}

/**
 * Returns the chunks of a thread's last response, for a server to send again to a client that lost its
 * connection.
 */
export function encodeLastResponse(
  thread: Thread,
  options?: ToUIMessagesOptions,
): UIMessageChunk[] {
  const message = toUIMessages(thread, options).at(-1)
  if (message?.role !== 'assistant') return []
  const turn = thread.turns.findLast((candidate) => candidate.turn_type === 'agent')
  const response = turn?.messages.findLast((candidate) => candidate.message_type === 'response')
  const { finish_reason, ui_finish_reason } = (response ?? {}) as {
    finish_reason?: FinishReason
    ui_finish_reason?: UIFinishReason
  }
  // The reason `interrupted` prevents the client from automatically sending the message again.
  const finishReason =
    turn?.completion_status === 'interrupted'
      ? 'interrupted'
      : finish_reason
        ? uiFinishReason(finish_reason)
        : ui_finish_reason
  return [...encodeUIMessage(message, { finishReason })]
}

/** Returns a finish reason of a thread in the client's spelling with hyphens; undefined for other text. */
export function uiFinishReason(reason: string | undefined): UIFinishReason | undefined {
  return FINISH_REASONS.get(reason ?? '')
}

const FINISH_REASONS: ReadonlyMap<string, UIFinishReason> = new Map<FinishReason, UIFinishReason>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content_filter', 'content-filter'],
  ['tool_call', 'tool-calls'],
  ['error', 'error'],
])

type OtherPart = Exclude<UIMessagePart, { type: 'step-start' }>

/** Returns the chunks of one part of a finished message, in the order that the client requires. */
export function* encodePart(
  part: OtherPart,
  id: string,
): Generator<UIMessageChunk, void, undefined> {
  switch (part.type) {
    case 'text': {
      yield { type: 'text-start', id, ...providerMetadataOf(part) }
      if (part.text !== '') yield { type: 'text-delta', id, delta: part.text }
      const citations = part.citations ? { citations: part.citations } : {}
      if (part.state !== 'streaming') yield { type: 'text-end', id, ...citations }
      return
    }
    case 'reasoning': {
      const reasoningId = part.id ?? id
      yield { type: 'reasoning-start', id: reasoningId, ...providerMetadataOf(part) }
      if (part.text !== '') yield { type: 'reasoning-delta', id: reasoningId, delta: part.text }
      if (part.state !== 'streaming') yield { type: 'reasoning-end', id: reasoningId }
      return
    }
    case 'file':
      // The chunk has no fields for `filename` and `providerReference`; only files from a person have them.
      yield {
        type: part.type,
        url: part.url,
        mediaType: part.mediaType,
        ...providerMetadataOf(part),
      }
      return
    case 'reasoning-file':
    case 'custom':
    case 'source-url':
    case 'source-document':
    case 'steering-message':
      yield part
      return
    default:
      if (isToolPart(part)) yield* encodeTool(part as OpenToolPart)
      else {
        const { type, id: dataId, data } = part satisfies DataUIPart
        yield dataId === undefined ? { type, data } : { type, id: dataId, data }
      }
  }
}

function providerMetadataOf<T>({ providerMetadata }: { providerMetadata?: T }): {
  providerMetadata?: T
} {
  return providerMetadata === undefined ? {} : { providerMetadata }
}

/** Returns the chunks of one call, in the order that the client requires: input, approval, outcome. */
function* encodeTool(part: OpenToolPart): Generator<UIMessageChunk, void, undefined> {
  const isDynamic = part.type === 'dynamic-tool'
  const call = {
    toolCallId: part.toolCallId,
    toolName: isDynamic ? (part.toolName ?? '') : part.type.slice('tool-'.length),
    providerExecuted: part.providerExecuted,
    providerMetadata: part.callProviderMetadata,
    toolMetadata: part.toolMetadata,
    dynamic: isDynamic || undefined,
    title: part.title,
  }
  if (part.state === 'input-streaming') {
    const { toolCallId, inputEncoding, rawInput } = part
    yield { type: 'tool-input-start', ...call, inputEncoding }
    if (typeof rawInput === 'string' && rawInput !== '')
      yield { type: 'tool-input-delta', toolCallId, inputTextDelta: rawInput }
  } else if (part.state === 'output-error' && part.input === undefined) {
    yield { type: 'tool-input-start', ...call }
    yield {
      type: 'tool-input-error',
      ...call,
      input: undefined,
      errorText: part.errorText ?? '',
      ...resultMetadataOf(part),
    }
  } else {
    yield { type: 'tool-input-available', ...call, input: part.input }
    yield* encodeApproval(part)
    yield* encodeOutcome(part)
  }
}

function* encodeApproval({
  toolCallId,
  approval,
}: OpenToolPart): Generator<UIMessageChunk, void, undefined> {
  if (!approval) return
  const {
    id: approvalId,
    approved,
    reason,
    requestReason,
    descriptor,
    isAutomatic,
    signature,
  } = approval
  yield {
    type: 'tool-approval-request',
    approvalId,
    toolCallId,
    approvalDescriptor: descriptor,
    ...('inputSchemaInput' in approval && { inputSchemaInput: approval.inputSchemaInput }),
    reason: requestReason,
    isAutomatic,
    signature,
  }
  if (approved === undefined) return
  yield {
    type: 'tool-approval-response',
    approvalId,
    approved,
    reason,
  }
}

function* encodeOutcome(part: OpenToolPart): Generator<UIMessageChunk, void, undefined> {
  const { toolCallId, state, output, preliminary, errorText } = part
  const dynamic = part.type === 'dynamic-tool' ? { dynamic: true } : {}
  if (state === 'output-available') {
    const early = preliminary === undefined ? {} : { preliminary }
    yield {
      type: 'tool-output-available',
      toolCallId,
      output,
      ...early,
      ...dynamic,
      ...resultMetadataOf(part),
    }
  } else if (state === 'output-error') {
    yield {
      type: 'tool-output-error',
      toolCallId,
      errorText: errorText ?? '',
      ...dynamic,
      ...resultMetadataOf(part),
    }
  } else if (state === 'output-denied') {
    yield { type: 'tool-output-denied', toolCallId }
  }
}

function resultMetadataOf({ resultProviderMetadata }: OpenToolPart): {
  providerMetadata?: NonNullable<typeof resultProviderMetadata>
} {
  return resultProviderMetadata ? { providerMetadata: resultProviderMetadata } : {}
}
