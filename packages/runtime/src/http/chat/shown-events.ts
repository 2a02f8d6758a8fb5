import type { ThreadEvent } from '@skein/threads'
import { agentRegistrations } from '../../event.ts'
import type { Registry } from '../../definitions/resolved.ts'
import type { NumberedEvent } from '../../runtime-api.ts'
import { ChatView } from './chat-view.ts'
import { HoldBack } from './hold-back.ts'

/** The events of a thread as a chat shows them: what is for people, and only when it may be said. */
export class ShownEvents {
  readonly view: ChatView = new ChatView()
  /** Whether the agent that speaks has to be let through by a gate. */
  isGoverned = false
  readonly #registry: Registry
  readonly #holds: boolean
  #hold: HoldBack | undefined

  constructor(registry: Registry, { hold = false }: { readonly hold?: boolean } = {}) {
    this.#registry = registry
    this.#holds = hold
  }

  push(event: NumberedEvent['event']): readonly ThreadEvent[] {
    const before = event.type === 'turn_start' ? this.#changeSpeaker(event.agentId) : []
    const shown = this.view.push(event)
    const hold = this.#hold
    return hold ? [...before, ...shown.flatMap((one) => hold.push(one))] : [...before, ...shown]
  }

  /** Nothing more will come. */
  end(): readonly ThreadEvent[] {
    return this.#hold?.end() ?? []
  }

  /** Who speaks, where the events begin in the middle of a turn. */
  speaks(agent: string): void {
    this.isGoverned = isGovernedAgent(this.#registry, agent)
    this.#hold = this.#holds && this.isGoverned ? new HoldBack() : undefined
  }

  #changeSpeaker(agentId: string): readonly ThreadEvent[] {
    const rest = this.end()
    this.speaks(agentId.slice(0, agentId.lastIndexOf('/')))
    return rest
  }
}

/** Whether results of an agent pass a gate before they count. */
export function isGovernedAgent(registry: Registry, name: string): boolean {
  if (!registry.agents.has(name)) return false
  return registry.agent(name).definition.taskClass !== undefined
}

/** Names of the sides of all agents, as their turns refer to them. */
export function agentNames(registry: Registry): Readonly<Record<string, string>> {
  const agents = [...registry.agents.values()].flatMap((agent) => agentRegistrations(agent, ''))
  return Object.fromEntries(agents.map(({ agent }) => [agent.agent_id, agent.agent_name]))
}
