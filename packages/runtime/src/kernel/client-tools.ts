import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import { defer, type Tool } from '@skein/ai'
import type { KernelState } from './state.ts'

/** The value of a thread that lists tools of its client, beside those of the prompt. */
export const CLIENT_TOOLS = 'skein.client_tools'

/** A tool that runs at the client: its calls wait for their result. */
export function clientTool({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): Tool {
  return {
    name,
    description,
    parameters,
    run: (args: JsonObject) =>
      defer({ kind: 'input', request: { kind: 'client_tool', toolName: name, arguments: args } }),
  } as Tool // Tool hides the types of its parameters
}

/** Tools that the client of this thread has brought along; a name of the prompt's own comes first. */
export function clientToolsOf({ values }: KernelState, taken: readonly Tool[]): readonly Tool[] {
  const listed = values.get(CLIENT_TOOLS)
  if (!Array.isArray(listed)) return []
  const names = new Set(taken.map(({ name }) => name))
  return listed.flatMap((tool) =>
    isDeclared(tool) && !names.has(tool.name) ? [clientTool(tool)] : [],
  )
}

function isDeclared(
  tool: JsonValue,
): tool is JsonObject & Pick<Tool, 'name' | 'description' | 'parameters'> {
  return (
    isPlainObject(tool) &&
    typeof tool['name'] === 'string' &&
    typeof tool['description'] === 'string' &&
    isPlainObject(tool['parameters'])
  )
}
