import type { JsonSchema } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { GovernanceError } from '../contract/reason.ts'
import { callThrough, type CallingRun } from './call-through.ts'

/** A function tool in the form that the OpenAI Agents SDK expects in `tools`. */
export interface OpenAiAgentsTool {
  readonly type: 'function'
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema & {
    readonly type: 'object'
    readonly properties: Record<string, never>
    readonly required: string[]
    readonly additionalProperties: boolean
  }
  readonly strict: boolean
  readonly invoke: (
    context: unknown,
    input: string,
    details?: { readonly toolCall?: { readonly callId: string } },
  ) => Promise<string>
  readonly needsApproval: () => Promise<boolean>
  readonly isEnabled: () => Promise<boolean>
}

/**
 * Converts a run's tools for agents of the OpenAI Agents SDK. The SDK's own approval is not used, because
 * its stored state could be changed while it waits; the governed run checks exactly the arguments that
 * the tool runs with.
 *
 *     const tools = openAiAgentsTools(run, task.tools)
 *     const agent = new Agent({ name, instructions, model: openAiAgentsModel(run, model), tools })
 *
 * Use it with `openAiAgentsModel`, which records answers: after a wait for a person, the run continues with the
 * recorded calls.
 */
export function openAiAgentsTools(
  run: CallingRun,
  tools: readonly GovernedTool[],
): OpenAiAgentsTool[] {
  return tools.map((tool) => ({
    type: 'function',
    name: tool.name,
    description: tool.description,
    // The SDK's type requires all these members, but a tool's schema may lack some of them.
    parameters: {
      properties: {},
      required: [],
      additionalProperties: true,
      ...(tool.parameters as object),
      type: 'object',
    } as OpenAiAgentsTool['parameters'],
    // Strict mode is off, because a strict schema forbids optional members, which tools may have.
    strict: false,
    invoke: (_context, input, details) => invoke(run, tool, input, details?.toolCall?.callId),
    needsApproval: async () => false,
    isEnabled: async () => true,
  }))
}

async function invoke(
  run: CallingRun,
  tool: GovernedTool,
  input: string,
  id: string | undefined,
): Promise<string> {
  try {
    const args: unknown = JSON.parse(input)
    const result = await callThrough(run, tool, args, id)
    return typeof result === 'string' ? result : JSON.stringify(result)
  } catch (error) {
    // Errors are returned as text, as the SDK's own tools do: the model reads the error and the agent
    // continues.
    if (error instanceof GovernanceError) return `Error: ${error.message}`
    if (error instanceof SyntaxError) return 'Error: the arguments are not JSON.'
    throw error
  }
}
