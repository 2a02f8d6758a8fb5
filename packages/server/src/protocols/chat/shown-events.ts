import type { ThreadEvent } from '@skein/threads'
import { checksAnswers } from '@skein/runtime/serving'
import type { Registry, NumberedEvent } from '@skein/runtime'
import type { ChatCall } from './admit-chat.ts'
import { ChatView } from './chat-view.ts'
import { HoldBack } from './hold-back.ts'

/**
 * Selects the events that a chat shows: those for people. With `hold`, text of agents whose answers are checked
 * (governed agents) is shown only after it has passed all checks.
 */
export class ShownEvents {
  readonly view: ChatView = new ChatView()
  /** Whether the answers of the current agent are checked before they are delivered. */
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
    // The log says so, too: the definition may be gone, or have no task class any more.
    if (!this.isGoverned && isChecked(event)) this.#govern()
    const events = this.view.push(event)
    const hold = this.#hold
    return hold ? [...before, ...events.flatMap((one) => hold.push(one))] : [...before, ...events]
  }

  /** Ends the selection. Returns the events that were held back, without text that was not delivered. */
  end(): readonly ThreadEvent[] {
    return this.#hold?.end() ?? []
  }

  /** Sets the current agent, for streams that begin in the middle of a turn. */
  speaks(agent: string): void {
    this.isGoverned = false
    this.#hold = undefined
    if (isGovernedAgent(this.#registry, agent)) this.#govern()
  }

  #govern(): void {
    this.isGoverned = true
    if (this.#holds) this.#hold = new HoldBack()
  }

  #changeSpeaker(agentId: string): readonly ThreadEvent[] {
    const rest = this.end()
    this.speaks(agentId.slice(0, agentId.lastIndexOf('/')))
    return rest
  }
}

/** Whether an agent has rules (a task class) by which its answers are checked before they are delivered. */
export function isGovernedAgent(registry: Registry, name: string): boolean {
  if (!registry.agents.has(name)) return false
  return checksAnswers(registry.agent(name))
}

/** Whether the event is words of an agent whose answers a gate checks. */
export function isChecked(event: NumberedEvent['event']): boolean {
  return 'delivery' in event && event.delivery !== undefined && event.type !== 'delivery_changed'
}

/**
 * Whether text of agents whose answers are checked (governed agents) is held back until it has passed all checks:
 * because the server is set so, or because the page asks for it.
 */
export function holds({ query, services }: Pick<ChatCall, 'query' | 'services'>): boolean {
  return services.holdsGoverned || query.hold === true
}
