import type { Tool } from '@skein/ai'

/** The tools, whose `approval` says yes to calls that somebody has approved already. */
export function approving(tools: readonly Tool[], approved: ReadonlySet<string>): readonly Tool[] {
  if (approved.size === 0) return tools
  return tools.map((tool) => (tool.approval ? withApproved(tool, approved) : tool))
}

function withApproved(tool: Tool, approved: ReadonlySet<string>): Tool {
  const approval = (params: never, context: { readonly toolCallId: string }): unknown =>
    approved.has(context.toolCallId) || tool.approval!(params, context as never)
  // Not a spread: a tool may be an instance of a class.
  return Object.create(Object.getPrototypeOf(tool) as object | null, {
    ...Object.getOwnPropertyDescriptors(tool),
    approval: { value: approval, enumerable: true },
  }) as Tool // Object.create does not carry the type
}
