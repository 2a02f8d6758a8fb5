import type { JsonObject, JsonValue } from '@skein/base'
import type { Tool } from '../contract/tool.ts'
import { listOf, objectOf } from './read-json.ts'

/** A tool as a client declares it: it runs there, not here. */
export type DeclaredTool = Omit<Tool, 'run' | 'approval'>

/** Function tools are the client's own; all other kinds are for the vendor and stay params. */
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
