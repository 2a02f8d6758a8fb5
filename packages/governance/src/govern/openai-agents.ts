import { isPlainObject, type JsonSchema, type JsonValue, tryParseJson } from '@skein/base'
import { GovernanceError } from '../contract/reason.ts'
import { CallGate, type GateCall, type GovernOptions, type Tiered } from './gate.ts'

/** The part of a function tool of the OpenAI Agents SDK that is used here. */
interface OpenAiAgentsOwnTool {
  readonly name: string
  readonly description?: string
  readonly invoke: (context: never, input: string, details?: never) => Promise<unknown>
}

interface RunContext {
  readonly context?: unknown
}

/**
 * Governs function tools of the OpenAI Agents SDK. It takes the tools that an application has, each with
 * its risk, and returns them for `new Agent({ tools })`. A call that must wait for a person becomes an
 * interruption of the runner; store `result.state.toString()`, call `state.approve(item)` when the person
 * has answered, and run the state again, in any process.
 *
 * The stored state proves nothing. So a call runs only if this function asked about it before, with the
 * same arguments, and each approval has one effect.
 */
export function governOpenAiAgents<const Tools extends readonly OpenAiAgentsOwnTool[]>(
  options: GovernOptions & {
    readonly tools: { readonly [Index in keyof Tools]: Tiered<Tools[Index], never> }
  },
): Tools[number][] {
  const tiered: readonly Tiered<OpenAiAgentsOwnTool, never>[] = options.tools
  const gate = new CallGate(
    tiered.map(({ tool, ...governance }) => ({
      name: tool.name,
      description: tool.description ?? tool.name,
      parameters: {} as JsonSchema,
      governance,
    })),
    options,
  )
  return tiered.map(({ tool }) => governTool(gate, tool))
}

function governTool<Tool extends OpenAiAgentsOwnTool>(gate: CallGate, tool: Tool): Tool {
  const invoke = tool.invoke as (
    context: unknown,
    input: string,
    details?: unknown,
  ) => Promise<unknown>
  const run = async (args: JsonValue, context: unknown, details?: unknown): Promise<JsonValue> => {
    const result = await invoke.call(tool, context, JSON.stringify(args), details)
    return (result ?? null) as JsonValue
  }
  gate.setAlone(tool.name, (args) => run(args, undefined))
  return {
    ...tool,
    needsApproval: async (context: RunContext, args: unknown, id?: string) => {
      const call = { id: id ?? '', tool: tool.name, args, context: context.context }
      // The runner may ask again about a call that a person has answered; then no new approval is requested.
      if (await gate.wasAsked(call)) return true
      return (await gate.ask(call)) !== undefined
    },
    invoke: async (
      context: RunContext,
      input: string,
      details?: { readonly toolCall?: { readonly callId?: string } },
    ) => {
      const args = tryParseJson(input)
      if (!isPlainObject(args)) return 'Error: the arguments are not a JSON object.'
      const id = details?.toolCall?.callId ?? ''
      const call: GateCall = { id, tool: tool.name, args, context: context.context }
      try {
        return await gate.perform(call, (checked) => run(checked, context, details))
      } catch (error) {
        // Refusals are returned as text, as the SDK's own tools do with errors: the model reads them.
        if (error instanceof GovernanceError) return `Error: ${error.message}`
        throw error
      }
    },
  }
}
