import type { OpenToolPart, UIMessageChunk } from './types.ts'

/** The chunks of one call, in the order that the client asks for: input, approval, outcome. */
export function* encodeTool(part: OpenToolPart): Generator<UIMessageChunk, void, undefined> {
  const isDynamic = part.type === 'dynamic-tool'
  const call = {
    toolCallId: part.toolCallId,
    toolName: isDynamic ? (part.toolName ?? '') : part.type.slice('tool-'.length),
    ...(part.providerExecuted !== undefined && { providerExecuted: part.providerExecuted }),
    ...(part.callProviderMetadata && { providerMetadata: part.callProviderMetadata }),
    ...(part.toolMetadata !== undefined && { toolMetadata: part.toolMetadata }),
    ...(isDynamic && { dynamic: true }),
    ...(part.title !== undefined && { title: part.title }),
  }
  if (part.state === 'input-streaming') {
    yield* encodeStreaming(part, call)
  } else if (part.state === 'output-error' && part.input === undefined) {
    yield { type: 'tool-input-start', ...call }
    yield {
      type: 'tool-input-error',
      ...call,
      input: undefined,
      errorText: part.errorText ?? '',
      ...resultOf(part),
    }
  } else {
    yield { type: 'tool-input-available', ...call, input: part.input }
    yield* encodeApproval(part)
    yield* encodeOutcome(part)
  }
}

type CallFields = Omit<Extract<UIMessageChunk, { type: 'tool-input-start' }>, 'type'>

function* encodeStreaming(
  part: OpenToolPart,
  call: CallFields,
): Generator<UIMessageChunk, void, undefined> {
  const { inputEncoding, rawInput } = part
  yield { type: 'tool-input-start', ...call, ...(inputEncoding && { inputEncoding }) }
  if (typeof rawInput === 'string' && rawInput !== '') {
    yield { type: 'tool-input-delta', toolCallId: part.toolCallId, inputTextDelta: rawInput }
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
    ...(descriptor !== undefined && { approvalDescriptor: descriptor }),
    ...('inputSchemaInput' in approval && { inputSchemaInput: approval.inputSchemaInput }),
    ...(requestReason !== undefined && { reason: requestReason }),
    ...(isAutomatic !== undefined && { isAutomatic }),
    ...(signature !== undefined && { signature }),
  }
  if (approved === undefined) return
  yield {
    type: 'tool-approval-response',
    approvalId,
    approved,
    ...(reason !== undefined && { reason }),
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
      ...resultOf(part),
    }
  } else if (state === 'output-error') {
    yield {
      type: 'tool-output-error',
      toolCallId,
      errorText: errorText ?? '',
      ...dynamic,
      ...resultOf(part),
    }
  } else if (state === 'output-denied') {
    yield { type: 'tool-output-denied', toolCallId }
  }
}

function resultOf({ resultProviderMetadata }: OpenToolPart): {
  providerMetadata?: NonNullable<typeof resultProviderMetadata>
} {
  return resultProviderMetadata ? { providerMetadata: resultProviderMetadata } : {}
}
