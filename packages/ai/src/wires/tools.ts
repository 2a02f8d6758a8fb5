import { type JsonObject, type JsonSchema, type JsonValue, wellFormedJson } from '@skein/base'
import { optionsMetadata } from './metadata.ts'
import { listOf, objectOf, stringOf } from './read-json.ts'
import { requestError } from './wire-error.ts'
import type { Tool, ToolCall } from '../contract/tool.ts'

/**
 * Merges function tools and the vendor's own tools from `params.tools` into one list (UPP §11.4).
 * Function tools come first, so that the start of the list stays the same for the vendor's prompt cache.
 * Returns undefined if there are no tools.
 */
export function mergeTools({
  provider,
  tools,
  native,
  namesOf,
}: {
  readonly provider: string
  readonly tools: readonly JsonObject[]
  /** The caller's `params.tools`, unchecked. */
  readonly native: unknown
  /**
   * Returns the names that a tool declares; a name declared twice is rejected before the request is
   * sent.
   */
  readonly namesOf: (tool: JsonObject) => readonly unknown[]
}): readonly unknown[] | undefined {
  if (native === undefined) return tools.length > 0 ? tools : undefined
  if (!Array.isArray(native)) {
    throw requestError(provider, 'params.tools is not a list.', 'Give the tools in a list.')
  }
  const taken = new Set(tools.flatMap(namesOf))
  for (const tool of native as unknown[]) {
    const clash = namesOf(objectOf(tool) ?? {}).find((name) => taken.has(name))
    if (clash === undefined) continue
    throw requestError(
      provider,
      `The tool name ${JSON.stringify(clash)} is in both tools and params.tools.`,
      'Rename the function tool, or leave one of the two out.',
    )
  }
  return [...tools, ...(native as unknown[])]
}

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

/**
 * Writes the arguments of a call as JSON text for the history. The model's own text is used if it has
 * the same content, so that the vendor's prompt cache matches byte by byte. Arguments that were never
 * valid are sent as `{}`, because servers parse them; the tool result explains the error.
 */
export function argumentsText(call: ToolCall, verbatim: JsonValue | undefined): string {
  const written = wellFormedJson(JSON.stringify(call.arguments))
  if (typeof verbatim !== 'string') return written
  return rewritten(verbatim) === written ? verbatim : written
}

/**
 * Returns the argument text to keep, to be sent back exactly; undefined if the text is not JSON, or if
 * writing the parsed arguments gives the same text.
 */
export function verbatimArguments(text: string): string | undefined {
  const again = rewritten(text)
  return again === undefined || again === text ? undefined : text
}

function rewritten(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return undefined // cut off or malformed: there is nothing to replay
  }
}
