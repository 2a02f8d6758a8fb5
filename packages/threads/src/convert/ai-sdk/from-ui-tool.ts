import type { MessagePart, SystemMessage } from '../../types.ts'
import { carried } from './carrier.ts'
import { providerFields } from './from-ui-assistant.ts'
import type { OpenToolPart } from './types.ts'

/** The call of a tool part. Argument text is kept byte for byte where the stream had it. */
export function callPart(tool: OpenToolPart, rawInput: string | undefined): MessagePart {
  const { title, toolMetadata, type } = tool
  return {
    part_kind: tool.providerExecuted ? 'builtin-tool-call' : 'tool-call',
    tool_name: toolNameOf(tool),
    tool_call_id: tool.toolCallId,
    args: rawInput !== undefined && says(rawInput, tool.input) ? rawInput : (tool.input ?? null),
    ...(title !== undefined && { title }),
    ...(toolMetadata !== undefined && { tool_metadata: toolMetadata }),
    ...(type === 'dynamic-tool' && { dynamic: true }),
    ...providerFields(tool.callProviderMetadata, 'id'),
  } as MessagePart
}

export function toolNameOf(tool: OpenToolPart): string {
  return tool.type === 'dynamic-tool' ? (tool.toolName ?? '') : tool.type.slice('tool-'.length)
}

/** True when the text is JSON for this value: a server may have mended the input after streaming it. */
function says(text: string, value: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value)
  } catch {
    // Text that is no JSON was mended; the value is what counts.
    return false
  }
}

/** How Pydantic AI ends the text of a retry prompt; its adapter sends those as plain errors. */
const RETRY_SUFFIX = '\n\nFix the errors and try again.'

/** What became of a call; undefined while that is open. Retry, denial and interruption stay apart. */
export function outcomePart(tool: OpenToolPart, isRefusal: boolean): MessagePart | undefined {
  const ids = { tool_name: toolNameOf(tool), tool_call_id: tool.toolCallId }
  const kind = tool.providerExecuted ? 'builtin-tool-return' : 'tool-return'
  if (tool.state === 'output-available') {
    if (tool.preliminary) return undefined
    const content = tool.output ?? null
    return {
      part_kind: kind,
      ...ids,
      status: 'success',
      content,
      ...resultFields(tool),
    } as MessagePart
  }
  if (tool.state === 'output-denied') {
    const content = tool.approval?.reason ?? 'Tool call execution denied.'
    return { part_kind: kind, ...ids, status: 'error', outcome: 'denied', content } as MessagePart
  }
  if (tool.state !== 'output-error') return undefined
  const text = tool.errorText ?? ''
  const { outcome, errors } = carried(tool.resultProviderMetadata)
  if (outcome === 'retry' || isRefusal || (!outcome && text.endsWith(RETRY_SUFFIX))) {
    const content = Array.isArray(errors)
      ? errors
      : text.endsWith(RETRY_SUFFIX)
        ? text.slice(0, -RETRY_SUFFIX.length)
        : text
    return { part_kind: 'retry-prompt', content, ...ids, ...resultFields(tool) } as MessagePart
  }
  const fields = { part_kind: kind, ...ids, content: text, ...resultFields(tool) }
  if (outcome === 'validation_error')
    return { ...fields, status: 'validation_error' } as MessagePart
  return { ...fields, status: 'error', outcome: outcome ?? 'failed' } as MessagePart
}

function resultFields(tool: OpenToolPart): object {
  return providerFields(tool.resultProviderMetadata, 'id')
}

/** The approval that a tool part shows, as the events that made it. */
export function approvalEvents(tool: OpenToolPart, timestamp: string): SystemMessage[] {
  const { approval, toolCallId } = tool
  if (!approval) return []
  const {
    id: approval_id,
    approved,
    reason,
    requestReason,
    descriptor,
    isAutomatic,
    signature,
  } = approval
  const request = {
    approval_id,
    tool_call_id: toolCallId,
    ...(requestReason !== undefined && { reason: requestReason }),
    ...(descriptor !== undefined && { descriptor }),
    ...('inputSchemaInput' in approval && { input_schema_input: approval.inputSchemaInput }),
    ...(isAutomatic !== undefined && { is_automatic: isAutomatic }),
    ...(signature !== undefined && { signature }),
  }
  const base = { message_type: 'system', timestamp } as const
  const asked: SystemMessage = {
    ...base,
    event_type: 'tool.approval.requested',
    event_data: request,
  }
  if (approved === undefined) return [asked]
  const answer = {
    approval_id,
    tool_call_id: toolCallId,
    approved,
    ...(reason !== undefined && { reason }),
  }
  return [asked, { ...base, event_type: 'tool.approval.responded', event_data: answer }]
}
