import { systemClock, timeOrderedIds, type Clock, type IdSource } from '@skein/base'
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
  UserTurn,
} from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'

/** Settings of an import: values for data that the source format does not contain. */
export interface ImportOptions {
  /** Fields of the thread that the format does not have. */
  readonly thread?: Partial<Omit<Thread, 'version' | 'turns'>>
  /** The agent to use where the format names none. Default `assistant`. */
  readonly agent?: { readonly agent_id: string; readonly agent_name: string }
  readonly clock?: Clock
  readonly ids?: IdSource
}

type Entry = ThreadMessage | SystemMessage

/**
 * Builds a thread from a list of messages: each message of a person is a turn, and the messages up to the
 * next message of a person are an agent turn. A message without a time gets the time of the previous message;
 * the first message gets the clock's time.
 */
export class ThreadBuilder {
  readonly #options: ImportOptions
  readonly #clock: Clock
  readonly #turns: Turn[] = []
  readonly #names = new Map<string, string>()
  #messages: Entry[] | undefined
  #agentId: string
  #time: string | undefined
  /** The id of the thread, if the source names it; an id in the options has precedence. */
  threadId: string | undefined

  constructor(options: ImportOptions = {}) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#agentId = options.agent?.agent_id ?? 'assistant'
  }

  get agentId(): string {
    return this.#agentId
  }

  /** Sets the agent of the following messages. A different agent starts a new turn. */
  speaker(agentId: string, name?: string): void {
    if (name !== undefined) this.#names.set(agentId, name)
    if (agentId === this.#agentId) return
    this.#closeTurn()
    this.#agentId = agentId
  }

  user(parts: readonly MessagePart[], at?: string, fields: Partial<UserTurn> = {}): void {
    this.#closeTurn()
    this.#turns.push({ turn_type: 'user', submitted_at: this.#timeOf(at), parts, ...fields })
  }

  response(parts: readonly MessagePart[], at?: string, fields: Partial<ThreadMessage> = {}): void {
    this.#add('response', parts, at, fields)
  }

  request(parts: readonly MessagePart[], at?: string, fields: Partial<ThreadMessage> = {}): void {
    this.#add('request', parts, at, fields)
  }

  event(
    event_type: string,
    event_data: unknown,
    at?: string,
    fields: Partial<SystemMessage> = {},
  ): void {
    this.#open().push({
      message_type: 'system',
      timestamp: this.#timeOf(at),
      event_type,
      event_data,
      ...fields,
    })
  }

  /** True while the turn of an agent is open. */
  get isAgentTurn(): boolean {
    return this.#messages !== undefined
  }

  /** Ends the agent's turn; the next message, even from the same agent, starts another run. */
  endTurn(fields: Partial<AgentTurn> = {}): void {
    this.#closeTurn(fields)
  }

  build(): Thread {
    this.#closeTurn()
    const { thread, agent, ids } = this.#options
    const now = this.#now()
    const created_at = thread?.created_at ?? timesOf(this.#turns[0])[0] ?? now
    const agents = { ...thread?.agents }
    for (const turn of this.#turns) {
      if (turn.turn_type !== 'agent' || Object.hasOwn(agents, turn.agent_id)) continue
      const { agent_id } = turn
      const name =
        this.#names.get(agent_id) ?? (agent?.agent_id === agent_id ? agent.agent_name : agent_id)
      agents[agent_id] = { agent_id, agent_name: name, created_at }
    }
    return {
      version: '2.0.0',
      thread_id:
        thread?.thread_id ?? this.threadId ?? (ids ?? timeOrderedIds({ clock: this.#clock }))(),
      created_at,
      updated_at: timesOf(this.#turns.at(-1))[1] ?? now,
      ...thread,
      agents,
      turns: this.#turns,
    }
  }

  #add(
    message_type: 'request' | 'response',
    parts: readonly MessagePart[],
    at: string | undefined,
    fields: object,
  ): void {
    const message = {
      message_type,
      timestamp: this.#timeOf(at),
      agent_id: this.#agentId,
      parts,
      ...fields,
    }
    this.#open().push(message)
  }

  #open(): Entry[] {
    return (this.#messages ??= [])
  }

  #closeTurn(fields: Partial<AgentTurn> = {}): void {
    const messages = this.#messages
    if (!messages) return
    this.#messages = undefined
    this.#turns.push({
      turn_type: 'agent',
      agent_id: this.#agentId,
      started_at: messages[0]?.timestamp ?? this.#timeOf(undefined),
      completed_at: messages.at(-1)?.timestamp ?? this.#timeOf(undefined),
      messages,
      ...fields,
    })
  }

  #timeOf(at: string | undefined): string {
    return (this.#time = at ?? this.#time ?? this.#now())
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString()
  }
}

function timesOf(turn: Turn | undefined): [string | undefined, string | undefined] {
  if (!turn) return [undefined, undefined]
  return turn.turn_type === 'user'
    ? [turn.submitted_at, turn.submitted_at]
    : [turn.started_at, turn.completed_at]
}
