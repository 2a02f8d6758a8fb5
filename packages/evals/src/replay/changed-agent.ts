import type { ModelReference, Params, Tool } from '@skein/ai'
import { SkeinError } from '@skein/base'
import {
  createRegistry,
  defineAgent,
  type Registry,
  type ResolvedAgent,
  type ResolvedSide,
  type ToolDefinition,
} from '@skein/runtime'
import type { RecordedThread } from '../recorded/recorded-thread.ts'

/** What a replay changes of an agent. */
export interface AgentChange {
  /** The agent to change. Default: the agent of the thread. */
  readonly agent?: string
  readonly instructions?: string
  readonly model?: ModelReference
  /** Settings of the model, e.g. `{ temperature: 0 }`; they override those of the agent. */
  readonly settings?: Params
  /** The tools in place of those of the agent. They never run. */
  readonly tools?: readonly (ToolDefinition | Tool)[]
}

/** Returns the definitions with one agent changed. */
export function changedRegistry(
  registry: Registry,
  agentName: string,
  change: AgentChange,
): Registry {
  const agent = registry.agent(change.agent ?? agentName)
  const changed: ResolvedAgent = { ...agent, a: changedSide(agent.a, change) }
  const agents = new Map(registry.agents).set(agent.name, changed)
  return { ...registry, agents, agent: (name) => agents.get(name) ?? registry.agent(name) }
}

function changedSide(
  side: ResolvedSide,
  { instructions, model, settings, tools }: AgentChange,
): ResolvedSide {
  const { prompt } = side
  const { definition } = prompt
  const providerOptions = { ...definition.providerOptions, ...settings }
  return {
    ...side,
    prompt: {
      ...prompt,
      definition: { ...definition, providerOptions },
      ...(instructions !== undefined && { parts: [{ type: 'text', content: instructions }] }),
      ...(model && {
        models: [
          {
            ...prompt.models[0],
            name: model.modelId,
            model,
            definition: undefined,
            price: undefined,
            inputs: {},
          },
        ],
      }),
      ...(tools && { tools: resolvedTools(tools, model ?? prompt.models[0]?.model) }),
    },
  }
}

/** Lets the registry read tools of any origin. */
function resolvedTools(
  tools: readonly (ToolDefinition | Tool)[],
  model: ModelReference | undefined,
): ResolvedSide['prompt']['tools'] {
  if (!model)
    throw new SkeinError('An agent without a model has no tools to replace.', {
      code: 'INPUT_INVALID',
    })
  const agent = defineAgent({ name: 'changed', instructions: 'Changed.', model, tools })
  return createRegistry({ agents: [agent] }).agent('changed').a.prompt.tools
}

/** Returns the recording with another text in one message of a person: the last one before the step. */
export function withMessage(thread: RecordedThread, text: string, step: number): RecordedThread {
  const from = thread.requests[step - 1]?.seq ?? Infinity
  const queued = thread.events.findLast(
    ({ seq, event }) => seq < from && event.type === 'message_queued',
  )?.event
  if (queued?.type !== 'message_queued')
    throw new SkeinError(`No message precedes step ${step} of thread ${thread.threadId}.`, {
      code: 'INPUT_INVALID',
    })
  const content = [{ type: 'text', text }]
  const events = thread.events.map((stored) => {
    const { event } = stored
    const isIt =
      (event.type === 'message_queued' || event.type === 'message_added') &&
      event.queueId === queued.queueId
    return isIt
      ? { ...stored, event: { ...event, message: { ...event.message, content } } }
      : stored
  })
  return { ...thread, events: events as RecordedThread['events'] }
}
