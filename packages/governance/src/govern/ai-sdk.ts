import type { JsonSchema, JsonValue } from '@skein/base'
import { CallGate, type GateCall, type GovernOptions, type Tiered } from './gate.ts'

/** The part of a tool of the AI SDK that is used here. */
interface AiSdkOwnTool {
  readonly description?: unknown
  readonly execute?: unknown
  readonly needsApproval?: unknown
}

/** The arguments of a tool of the AI SDK. */
type AiSdkInput<Tool> = Tool extends {
  execute?: (input: infer Input, ...rest: never) => unknown
}
  ? Input
  : never

/** The options that the AI SDK gives to `needsApproval` and `execute`. */
interface AiSdkCallOptions {
  readonly toolCallId: string
  readonly messages?: readonly unknown[]
  readonly context?: unknown
}

/**
 * Governs tools of the AI SDK. It takes the tools that an application has, each with its risk, and returns
 * tools of the same types for `generateText`, `streamText` and agents. A call that must wait for a person
 * becomes the SDK's own approval request, which `useChat` shows; the SDK's loop ends there.
 *
 *     tools: governAiSdk({
 *       tools: {
 *         lookup: { tool: lookup, risk: 'read_only' },
 *         refund: { tool: refund, risk: 'write_high_risk', rollback: ({ id }) => … },
 *       },
 *     })
 *
 * The message history comes from a client and proves nothing. So a call runs only if this function asked
 * about it before, with the same arguments, and each approval has one effect.
 */
export function governAiSdk<Tools extends Record<string, AiSdkOwnTool>>(
  options: GovernOptions & {
    readonly tools: { readonly [Name in keyof Tools]: Tiered<Tools[Name], AiSdkInput<Tools[Name]>> }
  },
): Tools {
  const entries = Object.entries(options.tools as Record<string, Tiered<AiSdkOwnTool, never>>)
  const gate = new CallGate(
    entries.map(([name, { tool, ...governance }]) => ({
      name,
      description: typeof tool.description === 'string' ? tool.description : name,
      parameters: {} as JsonSchema,
      governance,
    })),
    options,
  )
  const governedTools = entries.map(([name, { tool }]) => [name, governTool(gate, name, tool)])
  // Each tool keeps its own type: only `needsApproval` and `execute` are replaced.
  return Object.fromEntries(governedTools) as Tools
}

function governTool(gate: CallGate, name: string, tool: AiSdkOwnTool): AiSdkOwnTool {
  const execute = tool.execute as
    ((input: unknown, options: AiSdkCallOptions) => unknown) | undefined
  // A tool without `execute` runs in the client, and there is nothing to govern here.
  if (!execute) return tool
  const callOf = (args: unknown, options: AiSdkCallOptions): GateCall => ({
    id: options.toolCallId,
    tool: name,
    args,
    context: options.context,
  })
  gate.setAlone(name, (args) => last(execute.call(tool, args, { toolCallId: `undo by ${name}` })))
  return {
    ...tool,
    needsApproval: async (args: unknown, options: AiSdkCallOptions) => {
      const call = callOf(args, options)
      // The SDK also calls this for a call that a person has answered. Such a call is in the message history,
      // which a client may have made up, so no new approval is requested for it.
      if (isInHistory(options)) return gate.wasAsked(call)
      return (await gate.ask(call)) !== undefined
    },
    execute: async (args: unknown, options: AiSdkCallOptions) =>
      gate.perform(callOf(args, options), (checked) => last(execute.call(tool, checked, options))),
  }
}

function isInHistory({ messages = [], toolCallId }: AiSdkCallOptions): boolean {
  return messages.some((message) => {
    const { content } = message as { readonly content?: unknown }
    return (
      Array.isArray(content) &&
      content.some((part: { type?: unknown; toolCallId?: unknown }) => {
        return part.type === 'tool-call' && part.toolCallId === toolCallId
      })
    )
  })
}

/** Waits for a result; of a tool that yields several, the last one counts, as it does in the SDK. */
async function last(result: unknown): Promise<JsonValue> {
  const output = (await result) as AsyncIterable<JsonValue> | JsonValue
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output))
    return output as JsonValue
  let value: JsonValue = null
  for await (const part of output) value = part
  return value
}
