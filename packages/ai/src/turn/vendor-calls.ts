import { isPlainObject, type JsonValue } from '@skein/base'
import type { Params } from '../contract/provider.ts'
import { defer, type Tool, type ToolCall } from '../contract/tool.ts'

/**
 * Returns the tools with one more for each call that no tool here can run: a call of a tool that a vendor defines
 * and its client runs (a shell, a computer, an approval of MCP), or that only `params.tools` declares. Such a call
 * waits: the turn ends with it in `openCalls`, instead of telling the model that there is no such tool.
 */
export function withVendorCalls(
  tools: readonly Tool[],
  calls: readonly ToolCall[],
  params: Params,
): readonly Tool[] {
  const names = new Set(tools.map(({ name }) => name))
  const waiting = calls.filter(
    (call) =>
      !names.has(call.toolName) && (isVendorCall(call) || isDeclared(params, call.toolName)),
  )
  if (waiting.length === 0) return tools
  return [...tools, ...[...new Set(waiting.map(({ toolName }) => toolName))].map(waitingTool)]
}

/** True if the wire marked the call as one of a tool that the vendor defines. */
function isVendorCall({ metadata }: ToolCall): boolean {
  return Object.values(metadata ?? {}).some((own) => own['vendorTool'] === true)
}

function isDeclared(params: Params, name: string): boolean {
  const declared: unknown = params['tools']
  if (!Array.isArray(declared)) return false
  return declared.some((tool: unknown) => {
    if (!isPlainObject(tool)) return false
    const inner = tool['function']
    return tool['name'] === name || (isPlainObject(inner) && inner['name'] === name)
  })
}

function waitingTool(name: string): Tool {
  const wait = (args: JsonValue): unknown =>
    defer({ kind: 'input', request: { tool: name, arguments: args } })
  return {
    name,
    description: '',
    parameters: { type: 'object' },
    approval: wait as NonNullable<Tool['approval']>,
    run: wait,
  }
}
