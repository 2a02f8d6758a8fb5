import { uuidV4, type IdSource, type JsonObject, type JsonValue } from '@skein/base'
import { isMessage, type Message, type MessageJSON } from '@skein/ai'
import { invalidRequest } from './agent-error.ts'
import type { Suspension } from './interrupt.ts'
import type { PlanStep } from './plan-step.ts'
import { SharedList } from './shared-list.ts'
import { frozenCopy, withEntry } from './state-data.ts'
import { readStateJSON, writeStateJSON } from './state-json.ts'
import type { SubagentExecutionTrace } from './subagent-trace.ts'

/** A state as JSON (UAP §12.1). */
export interface AgentStateJSON {
  readonly version: string
  readonly id: string
  readonly messages: readonly MessageJSON[]
  readonly step: number
  readonly metadata: JsonObject
  readonly reasoning?: readonly string[]
  readonly plan?: readonly PlanStep[]
  readonly subagentTraces?: readonly SubagentExecutionTrace[]
  /** Only while calls of the last message wait for an answer. */
  readonly suspension?: SuspensionJSON
}

export interface SuspensionJSON {
  readonly answered?: MessageJSON
  readonly deferred: Suspension['deferred']
}

/** What a state holds beside its id and its messages. */
export interface StateFields {
  readonly step: number
  readonly metadata: JsonObject
  readonly reasoning: SharedList<string>
  readonly plan: readonly PlanStep[] | undefined
  readonly subagentTraces: SharedList<SubagentExecutionTrace>
  readonly suspension: Suspension | undefined
  /** Fields of its JSON that this version does not know: kept and written again. */
  readonly unknown: JsonObject | undefined
}

export interface AgentStateOptions {
  /** Where the ids of this state and of all that come from it are made. Default: UUIDv4. */
  readonly ids?: IdSource
}

const key = Symbol('AgentState')

/**
 * An immutable snapshot of an agent's work (UAP §6). Every operation gives a new state with a new
 * id; messages are shared by reference, so that appending costs the same however long the history.
 *
 *     const state = AgentState.initial().withMetadata('user', 'ada')
 *     const { turn, state: next } = await coder.generate('Hello', state)
 */
export class AgentState {
  readonly id: string
  readonly step: number
  readonly metadata: JsonObject
  declare readonly plan?: readonly PlanStep[]
  /** Set while calls of the last message wait for an answer; see `agent.resume`. */
  declare readonly suspension?: Suspension
  readonly #messages: SharedList<Message>
  readonly #fields: StateFields
  readonly #ids: IdSource

  /** States come from `initial()` and `fromJSON()` alone. */
  private constructor(
    guard: typeof key,
    init: { id?: string; messages: SharedList<Message>; fields: StateFields; ids: IdSource },
  ) {
    if (guard !== key)
      throw invalidRequest(
        'AgentState cannot be constructed.',
        'Use AgentState.initial() or AgentState.fromJSON().',
      )
    const { messages, fields, ids } = init
    this.id = init.id ?? ids()
    this.step = fields.step
    this.metadata = fields.metadata
    if (fields.plan) this.plan = fields.plan
    if (fields.suspension) this.suspension = fields.suspension
    this.#messages = messages
    this.#fields = fields
    this.#ids = ids
    Object.freeze(this)
  }

  static initial({ ids = uuidV4 }: AgentStateOptions = {}): AgentState {
    return new AgentState(key, { messages: SharedList.of<Message>([]), fields: empty, ids })
  }

  /** Takes untrusted JSON: what is not a state is refused, naming the field. */
  static fromJSON(json: unknown, { ids = uuidV4 }: AgentStateOptions = {}): AgentState {
    const { id, messages, fields } = readStateJSON(json)
    return new AgentState(key, { id, messages: SharedList.of(messages), fields, ids })
  }

  /** The conversation, oldest first. A frozen array. */
  get messages(): readonly Message[] {
    return this.#messages.view
  }

  /** What the model reasoned before each action (`react`). */
  get reasoning(): readonly string[] {
    return this.#fields.reasoning.view
  }

  get subagentTraces(): readonly SubagentExecutionTrace[] {
    return this.#fields.subagentTraces.view
  }

  /** Appends one message. */
  withMessage(message: Message): AgentState {
    return this.withMessages([message])
  }

  /** Appends messages. */
  withMessages(messages: readonly Message[]): AgentState {
    return this.#next({}, this.#messages.append(checked(messages)))
  }

  /** Replaces the whole history; everything else stays. */
  withContext(messages: readonly Message[]): AgentState {
    return this.#next({}, SharedList.of(checked(messages)))
  }

  withStep(step: number): AgentState {
    if (!Number.isInteger(step) || step < 0)
      throw invalidRequest(`A step is a whole number from 0, not ${String(step)}.`)
    return this.#next({ step })
  }

  /** The value is copied and frozen; it must be JSON. `undefined` removes the entry. */
  withMetadata(name: string, value: unknown): AgentState {
    return this.#next({ metadata: withEntry(this.metadata, name, value as JsonValue | undefined) })
  }

  withReasoning(reasoning: string): AgentState {
    return this.#next({ reasoning: this.#fields.reasoning.append([reasoning]) })
  }

  withPlan(plan: readonly PlanStep[]): AgentState {
    return this.#next({ plan: frozenCopy(plan) })
  }

  withSubagentTrace(trace: SubagentExecutionTrace): AgentState {
    return this.#next({ subagentTraces: this.#fields.subagentTraces.append([frozenCopy(trace)]) })
  }

  /** Notes which calls of the last message wait; `undefined` when none does any more. */
  withSuspension(suspension: Suspension | undefined): AgentState {
    return this.#next({ suspension: suspension && Object.freeze({ ...suspension }) })
  }

  /** Everything, exactly; throws INVALID_REQUEST naming what JSON cannot say. */
  toJSON(): AgentStateJSON {
    return writeStateJSON(this.id, this.messages, this.#fields)
  }

  #next(changes: Partial<StateFields>, messages: SharedList<Message> = this.#messages): AgentState {
    return new AgentState(key, {
      messages,
      fields: { ...this.#fields, ...changes },
      ids: this.#ids,
    })
  }
}

const empty: StateFields = Object.freeze({
  step: 0,
  metadata: Object.freeze({}),
  reasoning: SharedList.of<string>([]),
  plan: undefined,
  subagentTraces: SharedList.of<SubagentExecutionTrace>([]),
  suspension: undefined,
  unknown: undefined,
})

function checked(messages: readonly Message[]): readonly Message[] {
  const wrong = messages.findIndex((message) => !isMessage(message))
  if (wrong < 0) return messages
  throw invalidRequest(
    `Item ${wrong} of the messages is not a message.`,
    'Make messages with UserMessage, AssistantMessage or ToolResultMessage of @skein/ai.',
  )
}
