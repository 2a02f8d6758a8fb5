import { type Clock, type IdSource, isObject, systemClock, timeOrderedIds } from '@skein/base'
import { type ConfigStore, createConfigStore } from './config-store.ts'
import { type Converted, ThreadError } from '../../issue.ts'
import { type JsonLimits, parseJson } from '../../json/json-parse.ts'
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
  UserTurn,
} from '../../document/thread.ts'
import { sumUsage } from '../../document/stats.ts'
import { importMessage, isTime } from './import-message.ts'

/** Settings of an import from Pydantic AI. */
export interface FromPydanticOptions {
  /** The thread to continue: the new messages of a run are appended to it. Default: a new thread. */
  readonly thread?: Thread
  /** The agent that ran. Default: the only agent of `thread`, else a new id. */
  readonly agentId?: string
  /** The agent's name in the registry, if it is not registered yet. Default `agent`. */
  readonly agentName?: string
  readonly threadId?: string
  /** The store for system prompts and instructions. Default: a store in memory, returned as `configs`. */
  readonly configs?: ConfigStore
  /**
   * `inline` keeps system prompts and instructions in the thread, which the specification does not allow.
   * Default `extract`.
   */
  readonly system?: 'extract' | 'inline'
  /**
   * Who wrote the prompts that start runs: a person (they become UserTurns, the default) or an orchestrator
   * (they stay inside the AgentTurn).
   */
  readonly prompts?: 'user' | 'agent'
  readonly limits?: JsonLimits
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** The imported thread, and the store with its prompts. An import never loses data, so `lost` is empty. */
export interface PydanticImport<
  Configs extends ConfigStore = ConfigStore,
> extends Converted<Thread> {
  readonly configs: Configs
}

/**
 * Converts Pydantic AI messages to a thread. The input is the text of `ModelMessagesTypeAdapter.dump_json`
 * (then the spelling of numbers is kept too) or the parsed list. Each run becomes one AgentTurn; the prompt
 * that started the run becomes a UserTurn before it, unless `prompts` is `agent`.
 */
export function fromPydanticAI(
  input: string | readonly unknown[],
  options: FromPydanticOptions = {},
): PydanticImport {
  const messages = typeof input === 'string' ? parseJson(input, options.limits).value : input
  if (!Array.isArray(messages)) {
    throw new ThreadError('A Pydantic AI history is a JSON list of messages.', {
      code: 'INVALID_PYDANTIC_HISTORY',
      hint: 'Pass what ModelMessagesTypeAdapter.dump_json(messages) returns.',
    })
  }
  const configs = options.configs ?? createConfigStore()
  return { value: new HistoryImport(options, configs).run(messages), lost: [], configs }
}

type Message = ThreadMessage | SystemMessage

class HistoryImport {
  readonly #options: FromPydanticOptions
  readonly #configs: ConfigStore
  readonly #agentId: string
  readonly #turns: Turn[]
  readonly #clock: Clock
  readonly #ids: IdSource
  /**
   * The messages of the run that is being read, and the turn that they extend if an earlier import began it.
   */
  #run: { readonly messages: Message[]; readonly base: AgentTurn | undefined } | undefined
  /** The `run_id` of the previous message; undefined before the first message. */
  #runId: unknown

  constructor(options: FromPydanticOptions, configs: ConfigStore) {
    this.#options = options
    this.#configs = configs
    this.#clock = options.clock ?? systemClock
    this.#ids = options.ids ?? timeOrderedIds({ clock: this.#clock })
    const agentNames = Object.keys(options.thread?.agents ?? {})
    this.#agentId = options.agentId ?? (agentNames.length === 1 ? agentNames[0]! : this.#ids())
    this.#turns = [...(options.thread?.turns ?? [])]
  }

  run(messages: readonly unknown[]): Thread {
    // Before the last turn is reopened: a message without a time has the time at which that turn ended.
    const times = this.#times(messages)
    this.#resume()
    messages.forEach((message, index) => this.#message(message, times[index]!))
    this.#closeRun()
    return this.#thread(times)
  }

  /** Reopens the last turn of the thread that is continued, if the new messages may belong to its run. */
  #resume(): void {
    const last = this.#turns.at(-1)
    if (last?.turn_type === 'user') this.#runId = last.run_id ?? undefined
    if (last?.turn_type !== 'agent' || last.agent_id !== this.#agentId) return
    const lastMessage = last.messages.findLast((message) => message.message_type !== 'system')
    const runId = lastMessage && 'run_id' in lastMessage ? lastMessage.run_id : undefined
    if (typeof runId !== 'string') return
    this.#runId = runId
    this.#turns.pop()
    this.#run = { messages: [...last.messages], base: last }
  }

  #message(source: unknown, time: string): void {
    const readable = isObject(source) && Array.isArray(source['parts']) ? source : undefined
    if (!readable || (readable['kind'] !== 'request' && readable['kind'] !== 'response')) {
      return this.#push({
        message_type: 'system',
        timestamp: time,
        event_type: UNKNOWN_MESSAGE,
        event_data: source,
      })
    }
    const prompted =
      readable['kind'] === 'request' &&
      (readable['parts'] as readonly unknown[]).some(
        (part) =>
          isObject(part) &&
          (part['part_kind'] === 'user-prompt' ||
            (part['part_kind'] === 'speech' && part['speaker'] === 'user')),
      )
    if (!this.#sameRun(readable['run_id'] ?? null, prompted)) {
      this.#closeRun()
      if (prompted && this.#options.prompts !== 'agent') {
        this.#turns.push(this.#convert(readable, 'user', time) as UserTurn)
        this.#runId = readable['run_id'] ?? null
        return
      }
    }
    this.#runId = readable['run_id'] ?? null
    this.#push(this.#convert(readable, 'agent', time) as ThreadMessage)
  }

  /**
   * Checks whether a message belongs to the same run as the previous one: it has the same `run_id` or, in
   * histories without run ids, it has no prompt.
   */
  #sameRun(runId: unknown, prompted: boolean): boolean {
    return runId === this.#runId && (runId !== null || !prompted)
  }

  #convert(
    source: { readonly [key: string]: unknown },
    owner: 'user' | 'agent',
    time: string,
  ): unknown {
    return importMessage(source, {
      owner,
      time,
      agentId: this.#agentId,
      configs: this.#options.system === 'inline' ? undefined : this.#configs,
    })
  }

  #push(message: Message): void {
    this.#run ??= { messages: [], base: undefined }
    this.#run.messages.push(message)
  }

  #closeRun(): void {
    if (this.#run === undefined) return
    const { messages, base } = this.#run
    this.#run = undefined
    const usage = sumUsage(
      messages.map((message) => ('usage' in message ? message.usage : undefined)),
    )
    this.#turns.push({
      ...(base ?? {
        turn_type: 'agent',
        agent_id: this.#agentId,
        started_at: messages[0]!.timestamp,
      }),
      completed_at: messages.at(-1)!.timestamp,
      messages,
      ...(usage && { total_usage: usage }),
    } as AgentTurn)
  }

  /** Returns a time for each message: its own, that of a part, that of a neighbouring message, or now. */
  #times(messages: readonly unknown[]): string[] {
    const found = messages.map((message) => {
      if (!isObject(message)) return undefined
      const parts = Array.isArray(message['parts']) ? (message['parts'] as readonly unknown[]) : []
      const firstWithTime = [message, ...parts].find(
        (item) => isObject(item) && isTime(item['timestamp']),
      )
      return (firstWithTime as { readonly timestamp: string } | undefined)?.timestamp // checked by isTime
    })
    const last = this.#turns.at(-1)
    let previous = last?.turn_type === 'user' ? last.submitted_at : last?.completed_at
    const first = previous ?? found.find((time) => time !== undefined)
    previous = first ?? new Date(this.#clock.now()).toISOString()
    return found.map((time) => (previous = time ?? previous!))
  }

  #thread(times: readonly string[]): Thread {
    const base = this.#options.thread
    const now = new Date(this.#clock.now()).toISOString()
    const agents = { ...base?.agents }
    if (!Object.hasOwn(agents, this.#agentId)) {
      const response = this.#firstResponse()
      agents[this.#agentId] = {
        agent_id: this.#agentId,
        agent_name: this.#options.agentName ?? 'agent',
        model_name: response?.model_name || undefined,
        provider_name: response?.provider_name || undefined,
        created_at: times[0] ?? now,
      }
    }
    return {
      ...(base ?? {
        version: '2.0.0',
        thread_id: this.#options.threadId ?? this.#ids(),
        created_at: times[0] ?? now,
      }),
      updated_at: times.at(-1) ?? base?.updated_at ?? now,
      agents,
      turns: this.#turns,
    } as Thread
  }

  #firstResponse(): ThreadMessage | undefined {
    for (const turn of this.#turns) {
      if (turn.turn_type !== 'agent' || turn.agent_id !== this.#agentId) continue
      for (const message of turn.messages) if (message.message_type === 'response') return message
    }
    return undefined
  }
}

/** The type of the system event in which a message of unknown kind is stored. */
export const UNKNOWN_MESSAGE = 'pydantic_ai.message'
