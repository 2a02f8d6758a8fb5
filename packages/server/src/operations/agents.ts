import { type JsonObject, type JsonSchema, type JsonValue, toJsonSchema } from '@skein/base'
import type { Problem, Registry, ResolvedAgent, Budget, VariableDefinition } from '@skein/runtime'
import type { ResolvedPrompt, ResolvedTool } from '@skein/runtime/serving'
import { json, operation, type OperationRoute } from './operation.ts'
import { HttpError } from './http-error.ts'
import { hasScope, checkPlayground } from './principal.ts'
import { ref } from './schemas.ts'
import {
  answer,
  anything,
  arrayOf,
  between,
  number,
  object,
  shape,
  string,
} from '@skein/base/shape'

/** An agent as the list of agents shows it: only names, never the texts of prompts or the values of variables. */
export interface AgentSummary {
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly title?: string
  readonly description?: string
  readonly icon?: string
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

/** The parts of an agent. Values of variables and settings of vendors' accounts are never included. */
export interface AgentDetail extends Omit<AgentSummary, 'sides'> {
  readonly sides: readonly (Omit<AgentSummary['sides'][number], 'tools'> & {
    /** The prompt as written, with variables as `{{NAME}}`; only with the scope `logs:read`, in the playground. */
    readonly text?: string
    readonly model: {
      readonly name: string
      readonly provider?: string
      readonly settings: JsonObject
      readonly maxContextTokens?: number
    } | null
    readonly maxSteps: number | null
    readonly stopsOnResponse: boolean
    readonly tools: readonly AgentTool[]
  })[]
  readonly limits: { readonly maxSessionTurns: number | null; readonly budget: Budget | null }
  /** The name of the UAICP conditions (evidence, checks) under which a session may deliver its answer. */
  readonly taskClass: string | null
  /** Errors in definitions that were edited and are therefore not in use; only with the scope `logs:read`. */
  readonly problems?: readonly Problem[]
  readonly warnings?: readonly Problem[]
}

interface AgentTool {
  readonly name: string
  readonly kind: ResolvedTool['kind']
  readonly description: string
  /** The JSON Schema of the arguments; null if the tool declares none. */
  readonly parameters: JsonSchema | null
  readonly risk?: string
  /** Whether a call can be undone: `impossible` if the tool declares that it cannot, `none` if it declares nothing. */
  readonly undo?: 'yes' | 'impossible' | 'none'
  /** Whether the client runs the tool, so that a call waits until the client sends a result. */
  readonly isClientSide?: boolean
  /** The agent that a call starts, sends a message to, or hands the thread over to. */
  readonly agent?: string
  readonly isBlocking?: boolean
  readonly isResumable?: boolean
  readonly maxInstances?: number
}

const toolAnswer = answer({
  threadId: string,
  outcome: string,
  'result?': anything,
  'durationMs?': number,
  waiting: arrayOf(ref('WaitingItem')),
})

/** The operations that read agents and try their tools. */
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
    summary:
      'One agent: its sides, models, tools with their schemas, risk and undo, children, limits, variables. With `logs:read` also the problems of its definitions and, where the playground is on, the texts of its prompts.',
    scope: 'threads:read',
    answers: [json('The agent.', ref('AgentDetail'))],
    errors: ['AGENT_NOT_FOUND'],
    // A thread's requests to models are shown without its secrets. But a definition belongs to no thread, so its
    // texts are shown as written, secrets included, and only where a developer works (`playground`).
    run({ runtime: { registry }, params, principal, services }) {
      const readsLogs = hasScope(principal, 'logs:read')
      const shows = { texts: readsLogs && services.studio.isPlayground, problems: readsLogs }
      return detailOf(registry, registry.agent(params.agent), shows)
    },
  }),
  operation('tryTool', {
    tag: 'agents',
    summary:
      'Makes one call of a tool of side A, without a model, in a thread of its own. It passes the gate as any other call, so it may wait for an approval. Only where the server allows it (`playground`).',
    scope: 'threads:write',
    probe: { params: { tool: 'note' }, body: { arguments: { text: 'Hello' } } },
    body: { json: shape({ arguments: object, 'waitMs?': between(0, 60_000) }) },
    answers: [json('What came of it.', toolAnswer)],
    errors: ['AGENT_NOT_FOUND', 'TOOL_NOT_FOUND', 'PLAYGROUND_OFF', 'SPENDING_LIMIT'],
    async run({ runtime, params, body, principal, services, request }) {
      checkPlayground(services.studio)
      const { a: side, name: agent } = runtime.registry.agent(params.agent)
      const definition = side.prompt.tools.find(({ name }) => name === params.tool)
      // A tool of an `agent()` cannot be tried: the strategy of such an agent decides by itself which calls are made.
      if (definition?.kind !== 'tool' || !definition.tool.run || side.agent || side.handler)
        throw new HttpError('The agent has no tool with this name that can be tried.', {
          code: 'TOOL_NOT_FOUND',
          hint: 'GET /agents/{agent} lists its tools. Those of side A that run here can be tried.',
        })
      const { name: toolName } = definition
      const { tenant, user: owner } = principal
      const call = { toolName, arguments: body.arguments }
      const { threads } = runtime
      const { id: threadId } = await threads.create({
        agent,
        tenant,
        owner,
        title: `Try ${toolName}`.slice(0, 200),
        tags: ['try'],
        message: { text: `Try ${toolName}.`, call, userId: owner },
      })
      const late = new AbortController()
      const timer = services.timers.set(body.waitMs ?? 30_000, () => late.abort())
      const signal = AbortSignal.any([late.signal, request.signal])
      const settled = await threads
        .settled(threadId, { signal })
        .catch((error: unknown) => {
          if (!signal.aborted) throw error
        })
        .finally(() => services.timers.clear(timer))
      const log = (await threads.events(threadId)).map(({ event }) => event)
      const end = log.find((event) => event.type === 'tool_execution_end')
      const waiting = settled?.waiting ?? []
      if (end?.type !== 'tool_execution_end')
        return { threadId, outcome: waiting.length > 0 ? 'waiting' : 'running', waiting }
      const start = log.find((event) => event.type === 'tool_execution_start')
      return {
        threadId,
        outcome: end.outcome,
        result: (end.result ?? null) as JsonValue, // the log is JSON
        durationMs: start && Date.parse(end.at) - Date.parse(start.at),
        waiting,
      }
    },
  }),
]

function summaryOf({ name, type, definition, a, b }: ResolvedAgent): AgentSummary {
  const { title, description, icon } = definition
  const sides = b ? [a, b] : [a]
  const variables = new Map<string, VariableDefinition>()
  for (const { prompt } of sides) {
    const own = prompt.tools.flatMap((one) => ('tool' in one && one.tool.variables) || [])
    for (const variable of [...own, ...prompt.variables]) variables.set(variable.name, variable)
  }
  return {
    name,
    type,
    title,
    description,
    icon,
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

function detailOf(
  registry: Registry,
  agent: ResolvedAgent,
  shows: { readonly texts: boolean; readonly problems: boolean },
): AgentDetail {
  const { definition, a, b } = agent
  const summary = summaryOf(agent)
  const sides = b ? [a, b] : [a]
  return {
    ...summary,
    sides: sides.map(({ prompt, maxSteps, stopOnResponse }, index) => ({
      ...summary.sides[index]!,
      text: shows.texts ? textOf(prompt) : undefined,
      model: modelOf(prompt, shows.texts),
      maxSteps: finite(maxSteps),
      stopsOnResponse: stopOnResponse,
      tools: prompt.tools.map((tool) => toolOf(registry, tool)),
    })),
    limits: {
      maxSessionTurns: finite(agent.maxSessionTurns),
      budget: definition.budget ?? null,
    },
    taskClass: definition.taskClass?.name ?? null,
    problems: shows.problems ? (registry.problems ?? []) : undefined,
    warnings: shows.problems ? registry.warnings : undefined,
  }
}

function textOf({ parts }: ResolvedPrompt): string {
  return parts
    .map((part) => (part.type === 'text' ? part.content : `{{${part.property}}}`))
    .join('')
}

function modelOf(
  { models: [model], definition }: ResolvedPrompt,
  showsOptions: boolean,
): AgentDetail['sides'][number]['model'] {
  if (!model) return null
  const { toolChoice, parallelToolCalls, reasoning, includeChat, includePastTools } = definition
  const options = showsOptions && {
    ...model.definition?.providerOptions,
    ...definition.providerOptions,
  }
  const settings = { toolChoice, parallelToolCalls, reasoning, includeChat, includePastTools }
  return {
    name: model.name,
    provider: model.model.provider.name,
    // `JSON` leaves out undefined settings and values that it cannot express.
    settings: JSON.parse(JSON.stringify({ ...settings, ...options })) as JsonObject,
    maxContextTokens: model.definition?.capabilities?.maxContextTokens,
  }
}

function toolOf({ agents }: Registry, tool: ResolvedTool): AgentTool {
  const { name, kind } = tool
  switch (tool.kind) {
    case 'tool': {
      const { description, parameters, run, governance } = tool.tool
      const { risk, rollback } = governance
      const undo = rollback === undefined ? 'none' : rollback === 'impossible' ? rollback : 'yes'
      const isRead = risk === 'read_only'
      return {
        name,
        kind,
        description,
        parameters,
        risk,
        undo: isRead ? undefined : undo,
        isClientSide: run ? undefined : true,
      }
    }
    case 'handoff':
      return { name, kind, description: tool.description, parameters: null, agent: tool.agent }
    case 'subagent': {
      const { agent, description, isBlocking, isResumable, maxInstances } = tool.relation
      const schema = agents.get(agent)?.a.prompt.definition.requiredSchema
      return {
        name,
        kind,
        description,
        parameters: schema ? toJsonSchema(schema) : null,
        agent,
        isBlocking,
        isResumable,
        maxInstances: finite(maxInstances) ?? undefined,
      }
    }
    case 'prompt': {
      const schema = tool.prompt.definition.requiredSchema
      const parameters = schema ? toJsonSchema(schema) : null
      return { name, kind, description: tool.description, parameters }
    }
  }
}

function finite(number: number): number | null {
  return Number.isFinite(number) ? number : null
}
