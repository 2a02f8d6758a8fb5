import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { Tool, ToolCall } from '../contract/tool.ts'
import { optionsMetadata } from './metadata.ts'
import { listOf, objectOf, stringOf } from './read-json.ts'

/** A tool that a client declares; it runs at the client, not here. */
export type DeclaredTool = Omit<Tool, 'run' | 'approval'>

/** Makes a declared tool from the fields that the client sent. */
export function declaredTool(
  provider: string,
  name: string,
  {
    description,
    parameters = { type: 'object', properties: {} },
    options,
  }: {
    readonly description: JsonValue | undefined
    readonly parameters: JsonSchema | undefined
    /** The fields that only this vendor has. */
    readonly options: JsonObject
  },
): DeclaredTool {
  const metadata = optionsMetadata(provider, options)
  return { name, description: stringOf(description) ?? '', parameters, metadata }
}

/** Removes the call that a result answers from the open calls, and returns it: found by id, or else by tool name. */
export function takeCall(
  open: ToolCall[],
  id: string | undefined,
  name: string | undefined,
): { readonly toolCallId: string; readonly toolName: string | undefined } {
  const index = open.findIndex((call) =>
    id === undefined ? call.toolName === name : call.toolCallId === id,
  )
  const [call] = index < 0 ? [] : open.splice(index, 1)
  return {
    toolCallId: call?.toolCallId ?? id ?? name ?? '',
    toolName: call?.toolName ?? name,
  }
}

/**
 * Separates the client's function tools from all other kinds, which are the vendor's and stay in the
 * parameters.
 */
export function splitTools(
  value: JsonValue | undefined,
  decodeTool: (tool: JsonObject, index: number) => DeclaredTool,
): { readonly tools: readonly DeclaredTool[]; readonly native: readonly JsonValue[] } {
  const tools: DeclaredTool[] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const tool = objectOf(item)
    if (tool?.['type'] === 'function') tools.push(decodeTool(tool, index))
    else native.push(item)
  })
  return { tools, native }
}
