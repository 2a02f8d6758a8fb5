import type { GovernedTool } from '../contract/governed.ts'
import { type CallingRun, callThrough } from './call-through.ts'

/** The function `tool` of `@langchain/core/tools`, as far as it is used here. */
type MakeLangChainTool<Tool> = (
  run: (input: unknown, config?: LangChainConfig) => Promise<string>,
  fields: { name: string; description: string; schema: Record<string, unknown> },
) => Tool

interface LangChainConfig {
  readonly toolCall?: { readonly id?: string }
  readonly toolCallId?: string
}

/**
 * Converts a run's tools for a `ToolNode` or an agent of LangGraph.
 *
 *     import { tool } from '@langchain/core/tools'
 *     new ToolNode(langGraphTools(run, task.tools, { tool }))
 */
export function langGraphTools<Tool>(
  run: CallingRun,
  tools: readonly GovernedTool[],
  langChain: { readonly tool: MakeLangChainTool<Tool> },
): Tool[] {
  return tools.map((tool) =>
    langChain.tool(
      async (input, config) => {
        const id = config?.toolCall?.id ?? config?.toolCallId
        const result = await callThrough(run, tool, input, id)
        return typeof result === 'string' ? result : JSON.stringify(result)
      },
      {
        name: tool.name,
        description: tool.description,
        schema: { ...(tool.parameters as object) },
      },
    ),
  )
}
