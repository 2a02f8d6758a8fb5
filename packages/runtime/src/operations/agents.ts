import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { VariableDefinition } from '../definitions/types.ts'
import { json, operation, type OperationRoute } from './operation.ts'
import { ref } from './schemas.ts'
import { answer, arrayOf } from './shape.ts'

/** An agent in the catalogue: only names, never the texts of prompts or the values of variables. */
export interface AgentSummary {
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly title?: string
  readonly description?: string
  readonly sides: readonly {
    readonly side: 'a' | 'b'
    readonly label: string
    readonly prompt: string
    readonly models: readonly string[]
    readonly tools: readonly {
      readonly name: string
      readonly kind: 'tool' | 'handoff' | 'subagent' | 'prompt'
    }[]
  }[]
  readonly variables: readonly {
    readonly name: string
    readonly type: 'text' | 'secret'
    readonly required: boolean
    readonly description?: string
  }[]
}

/** The operations that read agents. */
export const agentOperations: readonly OperationRoute[] = [
  operation('listAgents', {
    tag: 'agents',
    summary: 'The agents that threads can be created for.',
    scope: 'threads:read',
    answers: [json('The agents.', answer({ agents: arrayOf(ref('Agent')) }))],
    run: ({ runtime }) => ({ agents: [...runtime.registry.agents.values()].map(summaryOf) }),
  }),
  operation('getAgent', {
    tag: 'agents',
    summary: 'One agent.',
    scope: 'threads:read',
    answers: [json('The agent.', ref('Agent'))],
    errors: ['AGENT_NOT_FOUND'],
    run: ({ runtime, params }) => summaryOf(runtime.registry.agent(params.agent)),
  }),
]

function summaryOf({ name, type, definition, a, b }: ResolvedAgent): AgentSummary {
  const { title, description } = definition
  const sides = b ? [a, b] : [a]
  const variables = new Map<string, VariableDefinition>()
  for (const { prompt } of sides)
    for (const variable of prompt.variables) variables.set(variable.name, variable)
  return {
    name,
    type,
    title,
    description,
    sides: sides.map(({ side, label, prompt }) => ({
      side,
      label,
      prompt: prompt.name,
      models: prompt.models.map((model) => model.name),
      tools: prompt.tools.map((tool) => ({ name: tool.name, kind: tool.kind })),
    })),
    variables: Array.from(variables.values(), (variable) => ({
      name: variable.name,
      type: variable.type ?? 'text',
      required: variable.required ?? false,
      description: variable.description,
    })),
  }
}
