import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { ImageBlock } from '../../contract/content.ts'
import { contentOf } from '../../contract/message.ts'
import type { ToolResult } from '../../contract/tool.ts'
import { imageUrl } from '../media.ts'
import { listOf, objectOf, textOf } from '../read-json.ts'
import { resultText } from '../../contract/result-text.ts'

/** Items that ask the client to run a tool which OpenAI defines. */
export type ClientItem =
  'computer_call' | 'shell_call' | 'local_shell_call' | 'apply_patch_call' | 'mcp_approval_request'

const clientItems: Readonly<Record<ClientItem, true>> = {
  computer_call: true,
  shell_call: true,
  local_shell_call: true,
  apply_patch_call: true,
  mcp_approval_request: true,
}

/** Returns the kind of a client item; undefined for any other item. */
export function clientItemOf(item: JsonObject | undefined): ClientItem | undefined {
  const type = item?.['type']
  return typeof type === 'string' && Object.hasOwn(clientItems, type)
    ? (type as ClientItem)
    : undefined
}

/** The name of the tool that an item calls, the id of the call, and its arguments. */
export interface ClientCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
}

/** Reads a client item as a call. */
export function readClientCall(kind: ClientItem, item: JsonObject): ClientCall {
  const toolCallId = textOf(item['call_id']) ?? textOf(item['id']) ?? ''
  switch (kind) {
    case 'computer_call': {
      const one = objectOf(item['action'])
      const actions = listOf(item['actions'])
      const checks = listOf(item['pending_safety_checks'])
      return {
        toolCallId,
        toolName: 'computer',
        arguments: {
          actions: actions.length > 0 ? actions : one ? [one] : [],
          ...(checks.length > 0 && { pending_safety_checks: checks }),
        },
      }
    }
    case 'shell_call':
      return { toolCallId, toolName: 'shell', arguments: objectOf(item['action']) ?? {} }
    case 'local_shell_call':
      return { toolCallId, toolName: 'local_shell', arguments: objectOf(item['action']) ?? {} }
    case 'apply_patch_call':
      return { toolCallId, toolName: 'apply_patch', arguments: objectOf(item['operation']) ?? {} }
    case 'mcp_approval_request': {
      const label = textOf(item['server_label']) ?? ''
      return {
        toolCallId,
        toolName: `mcp_approval_${label}`,
        arguments: {
          server_label: label,
          name: item['name'] ?? '',
          arguments: parsed(item['arguments']),
        },
      }
    }
    default:
      return kind satisfies never
  }
}

function parsed(json: JsonValue | undefined): JsonValue {
  try {
    return typeof json === 'string' ? (JSON.parse(json) as JsonValue) : (json ?? null)
  } catch {
    return json ?? null // shown as it came; nothing runs with it here
  }
}

/** An image of one pixel, for a call of the computer that failed: the API takes nothing but a screenshot. */
const EMPTY_SCREEN =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

/** Writes the result of a client item in the vendor's form. */
export function writeClientResult(
  kind: ClientItem,
  { toolCallId, result, isError }: ToolResult,
  call: JsonObject,
): readonly JsonObject[] {
  const fields = isPlainObject(result) ? (result as JsonObject) : undefined
  const text = resultText(result)
  switch (kind) {
    case 'computer_call': {
      const screenshot = fields?.['screenshot'] ?? result
      const image = contentOf(screenshot).find(
        (block): block is ImageBlock => block.type === 'image',
      )
      const url = image && !isError ? imageUrl(image) : EMPTY_SCREEN
      const output = {
        type: 'computer_call_output',
        call_id: toolCallId,
        output: { type: 'computer_screenshot', image_url: url },
        acknowledged_safety_checks: fields?.['acknowledged_safety_checks'],
      }
      if (url !== EMPTY_SCREEN) return [output]
      const content = [{ type: 'input_text', text: `The computer has no screenshot: ${text}` }]
      return [output, { type: 'message', role: 'user', content }]
    }
    case 'shell_call': {
      const list = (Array.isArray(result) ? result : [result]) as readonly JsonValue[]
      const isWritten = list.length > 0 && list.every((item) => objectOf(item)?.['outcome'])
      const own = isError
        ? { stdout: '', stderr: text, outcome: { type: 'exit', exit_code: 1 } }
        : { stdout: text, stderr: '', outcome: { type: 'exit', exit_code: 0 } }
      return [
        {
          type: 'shell_call_output',
          call_id: toolCallId,
          output: isWritten && !isError ? list : [own],
          max_output_length: objectOf(call['action'])?.['max_output_length'],
        },
      ]
    }
    case 'local_shell_call':
      return [{ type: 'local_shell_call_output', id: toolCallId, output: text }]
    case 'apply_patch_call': {
      const output = fields ? textOf(fields['output']) : text
      const isFailed = isError === true || fields?.['status'] === 'failed'
      return [
        {
          type: 'apply_patch_call_output',
          call_id: toolCallId,
          status: isFailed ? 'failed' : 'completed',
          output: output === '' || output === 'null' ? undefined : output,
        },
      ]
    }
    case 'mcp_approval_request': {
      const approve = !isError && (result === true || fields?.['approve'] === true)
      const reason = fields ? textOf(fields['reason']) : isError ? text : undefined
      return [{ type: 'mcp_approval_response', approval_request_id: toolCallId, approve, reason }]
    }
    default:
      return kind satisfies never
  }
}
