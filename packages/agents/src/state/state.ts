import { type IdSource, type JsonObject, type JsonValue, uuidV4 } from '@skein/base'
import { isMessage, type Message } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import { interruptsOf } from './interrupts.ts'
import { frozenData, withEntry } from './state-data.ts'
import { readStateJSON, writeStateJSON } from './state-json.ts'
import type {
  AgentStateJSON,
  Interrupt,
  PlanStep,
  RunAccount,
  SubagentExecutionTrace,
  Suspension,
} from './state-types.ts'

/** Options of a state. */
export interface AgentStateOptions {
  /** Makes the ids of this state and of all states derived from it. Default: UUIDv4. */
  readonly ids?: IdSource
}

/** The fields of a state, without its id. */
interface StateFields {
  readonly messages: SharedList<Message>
  readonly step: number
  readonly metadata: JsonObject
  readonly reasoning: SharedList<string>
  readonly plan?: readonly PlanStep[]
  readonly subagentTraces: SharedList<SubagentExecutionTrace>
  readonly suspension?: Suspension
  readonly run?: RunAccount
  /** Fields of the JSON that are unknown to this version; they are written again unchanged. */
  readonly unknown?: JsonObject
}

const key = Symbol('AgentState')

/**
 * True if it is known, without comparing messages, that the history of `state` begins with the whole history
 * of `older`. False if that is not known.
 */
export function extendsHistory(state: AgentState, older: AgentState | undefined): boolean {
  return AgentState['continues'](state, older)
}

/**
 * Returns a state with another step or another account (what its run has used). Only for runs, which compute
 * both values themselves: nothing is checked, and the account must be frozen data.
 */
export function advance(
  state: AgentState,
  changes: { readonly step: number } | { readonly run: RunAccount },
): AgentState {
  return AgentState['changed'](state, changes)
}

/**
 * An immutable snapshot of an agent's work (UAP §6). Every operation returns a new state with a new id.
 * Messages are shared by reference, so that the cost of appending does not depend on the length of the
 * history.
 *
 *     const state = AgentState.initial().withMetadata('user', 'ada')
 *     const { turn, state: next } = await coder.generate('Hello', state)
 */
export class AgentState {
  readonly step: number
  readonly metadata: JsonObject
  declare readonly plan?: readonly PlanStep[]
  /** Set while calls of the last message wait for an answer; see `agent.resume`. */
  declare readonly suspension?: Suspension
  /** What the latest run has done, before and after each `resume`: steps, tokens and time. */
  declare readonly run?: RunAccount
  readonly #fields: StateFields
  readonly #ids: IdSource
  #id: string | undefined

  /** Private: states are created with `initial()` and `fromJSON()`. */
  private constructor(
    guard: typeof key,
    init: { readonly id?: string; readonly fields: StateFields; readonly ids: IdSource },
  ) {
    if (guard !== key)
      throw invalidUse(
        'AgentState cannot be constructed.',
        'Use AgentState.initial() or AgentState.fromJSON().',
      )
    const { fields, ids } = init
    // UUIDs are made on first use. An application's id source is called here for every state: otherwise the id
    // that a state gets would depend on whose ids were read before.
    this.#id = init.id ?? (ids === uuidV4 ? undefined : ids())
    this.step = fields.step
    this.metadata = fields.metadata
    if (fields.plan) this.plan = fields.plan
    if (fields.suspension) this.suspension = fields.suspension
    if (fields.run) this.run = fields.run
    this.#fields = fields
    this.#ids = ids
    Object.freeze(this)
  }

  private static continues(state: AgentState, older: AgentState | undefined): boolean {
    return (
      older !== undefined &&
      #fields in state &&
      #fields in older &&
      state.#fields.messages.extends(older.#fields.messages)
    )
  }

  private static changed(state: AgentState, changes: Parameters<typeof advance>[1]): AgentState {
    if (#fields in state) return state.#next(changes)
    // A state of another copy of this package.
    const other: AgentState = state
    return 'run' in changes ? other.withRun(changes.run) : other.withStep(changes.step)
  }

  static initial({ ids = uuidV4 }: AgentStateOptions = {}): AgentState {
    return new AgentState(key, { fields: empty, ids })
  }

  /** Reads untrusted JSON. Throws INVALID_REQUEST with the name of the invalid field. */
  static fromJSON(json: unknown, { ids = uuidV4 }: AgentStateOptions = {}): AgentState {
    const { id, ...parts } = readStateJSON(json)
    const fields = {
      ...parts,
      messages: SharedList.of(parts.messages),
      reasoning: SharedList.of(parts.reasoning),
      subagentTraces: SharedList.of(parts.subagentTraces),
    }
    return new AgentState(key, { id, fields, ids })
  }

  /** A UUID is made when it is first read: most states of a run are replaced before anybody looks at them. */
  get id(): string {
    return (this.#id ??= this.#ids())
  }

  /** The conversation, oldest first. A frozen array. */
  get messages(): readonly Message[] {
    return this.#fields.messages.view
  }

  /** The texts that the model produced as reasoning before each action (`react`). */
  get reasoning(): readonly string[] {
    return this.#fields.reasoning.view
  }

  /** The traces of sub-agents, oldest first. */
  get subagentTraces(): readonly SubagentExecutionTrace[] {
    return this.#fields.subagentTraces.view
  }

  /**
   * What the state waits for, at any depth of sub-agents: the same list that the run returned, with the ids
   * that `agent.resume` takes. Needs no model, so that a page can show a stored state.
   */
  get interrupts(): readonly Interrupt[] {
    return interruptsOf(this.suspension?.deferred ?? [])
  }

  /** Appends one message. */
  withMessage(message: Message): AgentState {
    return this.withMessages([message])
  }

  /** Appends messages. */
  withMessages(messages: readonly Message[]): AgentState {
    return this.#next({ messages: this.#fields.messages.append(checked(messages)) })
  }

  /** Replaces the whole history; all other fields stay. */
  withContext(messages: readonly Message[]): AgentState {
    return this.#next({ messages: SharedList.of(checked(messages)) })
  }

  /** Sets the step number. */
  withStep(step: number): AgentState {
    if (!Number.isInteger(step) || step < 0)
      throw invalidUse(`A step is a whole number from 0, not ${String(step)}.`)
    return this.#next({ step })
  }

  /**
   * Sets a metadata entry. The value must be JSON; it is copied and frozen. `undefined` removes the entry.
   */
  withMetadata(name: string, value: unknown): AgentState {
    return this.#next({ metadata: withEntry(this.metadata, name, value as JsonValue | undefined) })
  }

  /** Appends a text to the reasoning. */
  withReasoning(reasoning: string): AgentState {
    return this.#next({ reasoning: this.#fields.reasoning.append([reasoning]) })
  }

  /** Replaces the plan. */
  withPlan(plan: readonly PlanStep[]): AgentState {
    return this.#next({ plan: frozenData(plan) })
  }

  /** Appends the trace of a sub-agent. */
  withSubagentTrace(trace: SubagentExecutionTrace): AgentState {
    return this.#next({ subagentTraces: this.#fields.subagentTraces.append([frozenData(trace)]) })
  }

  /** Sets which calls of the last message wait; `undefined` when none waits any more. */
  withSuspension(suspension: Suspension | undefined): AgentState {
    if (!suspension) return this.#next({ suspension })
    const calls = frozenData(suspension.deferred)
    return this.#next({ suspension: Object.freeze({ ...suspension, deferred: calls }) })
  }

  /** Sets the account: what the run has used so far. */
  withRun(run: RunAccount): AgentState {
    return this.#next({ run: frozenData(run) })
  }

  /**
   * Returns the whole state as JSON. Throws INVALID_REQUEST with the
   * path of a value that JSON cannot express.
   */
  toJSON(): AgentStateJSON {
    const { id, messages, reasoning, subagentTraces } = this
    return writeStateJSON({ ...this.#fields, id, messages, reasoning, subagentTraces })
  }

  #next(changes: Partial<StateFields>): AgentState {
    return new AgentState(key, { fields: { ...this.#fields, ...changes }, ids: this.#ids })
  }
}

function checked(messages: readonly Message[]): readonly Message[] {
  const wrong = messages.findIndex((message) => !isMessage(message))
  if (wrong < 0) return messages
  throw invalidUse(
    `Item ${wrong} of the messages is not a message.`,
    'Make messages with UserMessage, AssistantMessage or ToolResultMessage of @skein/ai.',
  )
}

/**
 * An immutable list that is cheap to append to. All versions derived from each other share one array; each
 * version uses only its first `length` items. Appending to the newest version adds to the shared array;
 * appending to an older one copies it first. So n appends cost O(n). Each version can be read as a frozen
 * array, which is made on first use.
 */
class SharedList<T> {
  readonly length: number
  readonly #items: T[]
  #view: readonly T[] | undefined

  private constructor(items: T[], length: number) {
    this.#items = items
    this.length = length
  }

  static of<T>(items: readonly T[]): SharedList<T> {
    return new SharedList([...items], items.length)
  }

  append(more: readonly T[]): SharedList<T> {
    const isNewest = this.#items.length === this.length
    const items = isNewest ? this.#items : this.#items.slice(0, this.length)
    for (const item of more) items.push(item)
    return new SharedList(items, items.length)
  }

  extends(older: SharedList<T>): boolean {
    return this.#items === older.#items && this.length >= older.length
  }

  /** A frozen array; the same one each time. */
  get view(): readonly T[] {
    return (this.#view ??= Object.freeze(this.#items.slice(0, this.length)))
  }
}

const empty: StateFields = Object.freeze({
  messages: SharedList.of<Message>([]),
  step: 0,
  metadata: Object.freeze({}),
  reasoning: SharedList.of<string>([]),
  subagentTraces: SharedList.of<SubagentExecutionTrace>([]),
})
