import { joinPointer, type Loss } from '../../issue.ts'
import type { SystemMessage } from '../../document/thread.ts'
import type { MessagePart, UserContent } from '../../document/part.ts'
import { systemMessage } from '../../events/system-message.ts'
import { carried, CARRIER, omitKeys } from './carrier.ts'
import { contentOfUrl } from '../bridge/media.ts'
import type { OpenToolPart, UIMessagePart, UIProviderMetadata } from './types.ts'

/** Converts a person's parts to one prompt: a plain string if there is only text, else a list. */
export function userPrompt(
  parts: readonly UIMessagePart[],
  pointer: string,
  lost: Loss[],
): MessagePart[] {
  const items: UserContent[] = []
  parts.forEach((part, index) => {
    if (part.type === 'text') {
      const others = foreignMetadata(part.providerMetadata)
      const { text: content } = part
      items.push(others ? ({ kind: 'text-content', content, ...others } as UserContent) : content)
    } else if (part.type === 'file') {
      const reference = { filename: part.filename, provider_reference: part.providerReference }
      const others = foreignMetadata(part.providerMetadata)
      items.push({ ...contentOfUrl(part.url, part.mediaType), ...reference, ...others })
    } else {
      const reason = `a user turn has no place for a part of type ${part.type}`
      lost.push({ pointer: joinPointer(pointer, 'parts', index), reason })
    }
  })
  if (items.length === 0) return []
  const content = items.length === 1 && typeof items[0] === 'string' ? items[0] : items
  return [{ part_kind: 'user-prompt', content }]
}

/** Returns the metadata of other systems as the field `provider_metadata`, which `toUIMessages` writes back. */
export function foreignMetadata(
  metadata: UIProviderMetadata | undefined,
  ...consumed: readonly string[]
): { provider_metadata: UIProviderMetadata } | undefined {
  if (!metadata) return undefined
  const others = omitKeys(metadata, CARRIER, ...consumed) as UIProviderMetadata
  return Object.keys(others).length === 0 ? undefined : { provider_metadata: others }
}

/**
 * Reads the provider fields that Pydantic AI's adapter stores in a part's metadata. Metadata of other systems
 * is kept as it is.
 */
export function providerFields(metadata: unknown, idName: 'id' | 'thinking_id'): object {
  const all = metadata as Parameters<typeof foreignMetadata>[0]
  const fields = all?.['pydantic_ai'] ?? {}
  const { id, signature, provider_name, provider_details, ...rest } = fields
  return {
    ...(id !== undefined && { [idName]: id }),
    signature,
    provider_name,
    provider_details,
    ...foreignMetadata(all, ...(Object.keys(rest).length === 0 ? ['pydantic_ai'] : [])),
  }
}

/** Converts a tool part to a call. Argument text is kept byte for byte if it was streamed. */
export function callPart(tool: OpenToolPart, rawInput: string | undefined): MessagePart {
  const { title, toolMetadata, type } = tool
  return {
    part_kind: tool.providerExecuted ? 'builtin-tool-call' : 'tool-call',
    tool_name: toolNameOf(tool),
    tool_call_id: tool.toolCallId,
    args: rawInput !== undefined && says(rawInput, tool.input) ? rawInput : (tool.input ?? null),
    title,
    tool_metadata: toolMetadata,
    dynamic: type === 'dynamic-tool' || undefined,
    ...providerFields(tool.callProviderMetadata, 'id'),
  } as MessagePart
}

function toolNameOf(tool: OpenToolPart): string {
  return tool.type === 'dynamic-tool' ? (tool.toolName ?? '') : tool.type.slice('tool-'.length)
}

/**
 * Checks whether the text is the JSON of this value. The result is false when a server repaired the input
 * after streaming it.
 */
function says(text: string, value: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value)
  } catch {
    // The text is not JSON, so the server repaired it, and the parsed value is used.
    return false
  }
}

/**
 * The end of every retry prompt of Pydantic AI. Its adapter sends retry prompts as plain errors, which are
 * recognised by this text.
 */
const RETRY_SUFFIX = '\n\nFix the errors and try again.'

/**
 * Returns the part with the outcome of a call; undefined while the call is open. Retry, denial and
 * interruption are different outcomes.
 */
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

/** Returns the approval events (request and answer) that a tool part shows. */
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
    reason: requestReason,
    descriptor,
    ...('inputSchemaInput' in approval && { input_schema_input: approval.inputSchemaInput }),
    is_automatic: isAutomatic,
    signature,
  }
  const question = systemMessage('tool.approval.requested', request, timestamp)
  if (approved === undefined) return [question]
  const answer = { approval_id, tool_call_id: toolCallId, approved, reason }
  return [question, systemMessage('tool.approval.responded', answer, timestamp)]
}
