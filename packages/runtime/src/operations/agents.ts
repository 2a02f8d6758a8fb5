import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { VariableDefinition } from '../definitions/types.ts'
import { jsonResponse, type Route } from './operation.ts'
import { answer, listOf, ref } from './schemas.ts'

export const agentRoutes: readonly Route[] = [
  {
    id: 'listAgents',
    method: 'GET',
    path: '/agents',
    tag: 'agents',
    summary: 'Agents that threads can be created of.',
    scope: 'threads:read',
    addresses: 'nothing',
    answers: [
      { status: 200, description: 'The agents.', schema: answer({ agents: listOf(ref('Agent')) }) },
    ],
    handle: ({ runtime }) =>
      jsonResponse({ agents: [...runtime.registry.agents.values()].map(agentOf) }),
  },
  {
    id: 'getAgent',
    method: 'GET',
    path: '/agents/{agent}',
    tag: 'agents',
    summary: 'One agent.',
    scope: 'threads:read',
    addresses: 'nothing',
    answers: [{ status: 200, description: 'The agent.', schema: ref('Agent') }],
    errors: ['AGENT_NOT_FOUND'],
    handle: ({ runtime, params }) =>
      jsonResponse(agentOf(runtime.registry.agent(params['agent']!))),
  },
]

/** What clients need to know: names, never texts of prompts or values of variables. */
function agentOf({ name, type, definition, a, b }: ResolvedAgent): object {
  const { title, description } = definition
  const sides = b ? [a, b] : [a]
  const variables = new Map<string, VariableDefinition>()
  for (const { prompt } of sides)
    for (const variable of prompt.variables) variables.set(variable.name, variable)
  return {
    name,
    type,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    sides: sides.map(sideOf),
    variables: Array.from(variables.values(), (variable) => ({
      name: variable.name,
      type: variable.type ?? 'text',
      required: variable.required ?? false,
      ...(variable.description !== undefined && { description: variable.description }),
    })),
  }
}

function sideOf({ side, label, prompt }: ResolvedSide): object {
  return {
    side,
    label,
    prompt: prompt.name,
    models: prompt.models.map((model) => model.name),
    tools: prompt.tools.map((tool) => ({ name: tool.name, kind: tool.kind })),
  }
}
