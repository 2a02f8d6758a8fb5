import type { Agent } from '@skein/agents'
import type { ToolSchema } from '@skein/ai'
import { isStandardSchema } from '@skein/base'
import { asToolDefinition } from '../define-tool.ts'
import type { ResolvedPrompt } from '../resolved.ts'

/**
 * Converts an agent made with `agent()` of `@skein/agents` to a prompt, so that code that uses the prompt of a side
 * works for both. A tool without a risk is treated as a low-risk write.
 */
export function promptOfAgent(agent: Agent, name: string): ResolvedPrompt {
  const { model, system = '', config, params, structure, tools } = agent
  const { modelId } = model
  return {
    definition: {
      kind: 'prompt',
      name,
      prompt: system,
      model,
      providerOptions: params,
      output: isStandardSchema(structure) ? (structure as ToolSchema<unknown>) : undefined,
    },
    name,
    parts: [{ type: 'text', content: system }],
    models: [
      {
        name: modelId,
        model,
        definition: { kind: 'model', name: modelId, model, config },
        price: undefined,
        inputs: {},
      },
    ],
    tools: tools.map((tool) => ({
      kind: 'tool',
      name: tool.name,
      tool: asToolDefinition(tool)!, // agents accept only tools
      config: undefined,
    })),
    variables: [],
  }
}
