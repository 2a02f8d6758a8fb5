import { isPlainObject, isSameJson, type JsonObject, type MessageJSON } from '@skein/base'
import type { RuntimeUsageRecorded } from '../contract/event.ts'
import type { CostUsd } from '../contract/thread-info.ts'
import type { NumberedEvent } from '../contract/subscription.ts'
import type {
  ThreadView,
  ViewCall,
  ViewChild,
  ViewFailure,
  ViewItem,
  ViewMessage,
  ViewWait,
} from './thread-view.ts'

type AnyEvent = NumberedEvent['event']
type EventOf<Type extends AnyEvent['type']> = Extract<AnyEvent, { type: Type }>
type Draft<T> = { -readonly [K in keyof T]: T[K] }

/** Creates the view of a thread from its events. With `upTo`, events after this number are ignored. */
export function threadView(
  events: Iterable<{ readonly seq: number; readonly event: AnyEvent }>,
  { upTo = Infinity }: { readonly upTo?: number } = {},
): ThreadView {
  const fold = new ViewFold()
  for (const { seq, event } of events) {
    if (seq > upTo) break
    fold.push(event, seq)
  }
  return fold.view
}

/**
 * Builds the view of a thread event by event, from stored events and from events that are only streamed.
 *
 *     const fold = new ViewFold()
 *     for await (const { id, event } of client.stream(threadId)) {
 *       fold.push(event, Math.trunc(Number(id)))
 *       show(fold.view)
 *     }
 */
export class ViewFold {
  readonly #view: Draft<
    Omit<ThreadView, 'items' | 'queued' | 'waiting' | 'children' | 'failures'>
  > = {
    threadId: '',
    agent: '',
    createdAt: '',
    updatedAt: '',
    seq: 0,
    status: 'idle',
    usage: { inputTokens: 0, outputTokens: 0, costUsd: 0, requests: 0, turns: 0 },
  }
  #items: Draft<ViewItem>[] = []
  readonly #calls = new Map<string, Draft<ViewCall>>()
  /** The calls of edited messages, by id; `call_changed` says which call each of them replaces. */
  readonly #changed = new Map<string, Pick<ViewCall, 'toolName' | 'arguments'>>()
  readonly #queued = new Map<string, ViewMessage>()
  /**
   * Everything that the thread waits for, by interrupt id. The wait before a model is asked again has
   * no interrupt; its key is the id of the step.
   */
  readonly #waiting = new Map<string, ViewWait>()
  readonly #children = new Map<string, Draft<ViewChild>>()
  readonly #failures: ViewFailure[] = []
  #agentId: string | undefined
  /** The status of the last event that names one. */
  #logged: ThreadView['status'] = 'idle'
  /** The status before the thread was `queued`. */
  #rest: 'idle' | 'stopped' | 'failed' = 'idle'
  /** The id of the request whose usage was counted last; a second event about the same request adds nothing. */
  #counted: string | undefined

  /** The view after all events pushed so far. */
  get view(): ThreadView {
    return {
      ...this.#view,
      items: this.#items.map((item) => ({ ...item })),
      queued: [...this.#queued.values()],
      waiting: [...this.#waiting.values()],
      children: Array.from(this.#children.values(), (child) => ({ ...child })),
      failures: [...this.#failures],
    }
  }

  /** Adds the next event. Events of unknown types change nothing. */
  push(event: AnyEvent, seq: number): void {
    this.#view.seq = Math.max(this.#view.seq, seq)
    this.#view.updatedAt = event.at
    if (!Object.hasOwn(this.#handlers, event.type)) return
    const handle = this.#handlers[event.type] as (event: AnyEvent) => void // the handler of this type
    handle(event)
  }

  // A record with one handler per event type, so that the compiler reports a missing type.
  readonly #handlers: { readonly [Type in AnyEvent['type']]: (event: EventOf<Type>) => void } = {
    thread_created: (event) => {
      const { threadId, at, title, parentThreadId } = event
      Object.assign(this.#view, { threadId, createdAt: at, title, parentThreadId })
      if ('agent' in event) this.#view.agent = event.agent
    },
    thread_updated: ({ title }) => {
      this.#view.title = title ?? this.#view.title
    },
    thread_terminated: () => this.#end('terminated'),
    thread_erased: () => this.#end('erased'),
    status_changed: ({ status, text }) => {
      this.#view.status = status
      this.#logged = status
      this.#view.statusText = text
    },
    session_start: ({ agent }) => {
      Object.assign(this.#view, { agent, status: 'running', result: undefined })
    },
    session_end: ({ outcome, reason, message, hint, at }) => {
      this.#view.status = outcome === 'completed' ? 'idle' : outcome
      this.#view.result = { outcome, reason, message, ...(hint !== undefined && { hint }) }
      this.#write()
      this.#waiting.clear()
      if (outcome === 'failed')
        this.#failures.push({ at, code: reason, message: message ?? 'The session failed.', hint })
    },
    session_failing: ({ at }) =>
      this.#note(at, 'The session fails. Its subagents were asked to stop first.'),
    write_undone: ({ at, call: callId, toolName, status, error }) => {
      const call = this.#calls.get(callId.slice(callId.indexOf(':') + 1))
      if (call) call.undo = error === undefined ? { at, status } : { at, status, error }
      this.#note(at, `${toolName}: ${UNDO_NOTE[status]}`)
    },
    undo_decided: nothing,

    message_queued: (event) => {
      const { queueId, message, at, isSilent, userId, attachments, subagentId, resumes } = event
      // A stopped thread is continued only by a message with `resumes`.
      if (this.#view.status !== 'stopped' || resumes === true) this.#giveWork()
      if (isSilent) return
      const details = {
        at,
        from: 'user',
        userId,
        subagentId,
        attachments: attachments ?? [],
      } as const
      this.#queued.set(queueId, { type: 'message', ...wordsOf(message), ...details })
    },
    message_unqueued: ({ queueId }) => {
      this.#queued.delete(queueId)
      if (this.#view.status === 'queued' && this.#queued.size === 0) this.#view.status = this.#rest
    },
    message_added: (event) => this.#addMessage(event),
    message_updated: ({ messageId, message }) => {
      const item = this.#items.find((one) => one.type === 'message' && one.id === messageId)
      if (item) Object.assign(item, wordsOf(message))
      const { toolCalls = [] } = message.type === 'assistant' ? message : {}
      for (const { toolCallId, toolName, arguments: args } of toolCalls)
        this.#changed.set(toolCallId, { toolName, arguments: args })
    },
    call_changed: ({ at, toolCallId, changedTo: id, parsed }) => {
      const [before, made] = [this.#calls.get(toolCallId), this.#changed.get(id)]
      if (!before || !made) return
      const call: ViewCall = {
        type: 'call',
        id,
        at,
        agentId: before.agentId,
        ...made,
        state: 'requested',
      }
      this.#items.splice(this.#items.indexOf(before) + 1, 0, call)
      this.#calls.set(id, call)
      this.#setParsed(id, parsed?.arguments)
    },
    message_removed: ({ messageId }) => {
      this.#items = this.#items.filter((item) => item.type !== 'message' || item.id !== messageId)
    },

    delivery_changed: ({ messageIds, delivery }) => {
      for (const item of this.#items)
        if (item.type === 'message' && messageIds.includes(item.id)) item.delivery = delivery
    },

    turn_start: ({ agentId, continues }) => {
      this.#agentId = agentId
      this.#view.status = 'running'
      this.#write()
      if (continues === undefined) this.#spend({ turns: 1 })
    },
    turn_end: () => this.#write(),
    step_start: ({ stepId }) => {
      this.#view.status = 'running'
      this.#write() // of a process that died in this step
      this.#waiting.delete(stepId)
    },
    step_reset: () => this.#write(),
    step_failed: ({ at, code, message, hint, retryAt, stepId }) => {
      this.#write()
      this.#failures.push({ at, code, message, hint, retryAt })
      if (retryAt !== undefined)
        this.#waiting.set(stepId, { for: 'model', since: at, until: retryAt, reason: message })
    },
    text_delta: ({ text, delivery }) => this.#write((this.#view.draft ?? '') + text, delivery),

    tool_execution_start: (event) => {
      const { toolCallId } = event
      if ('schema' in event && event.schema !== undefined)
        this.#setParsed(toolCallId, event.arguments)
      if (this.#view.status === 'queued') this.#view.status = 'running'
      this.#setCall(toolCallId, { state: 'running' })
    },
    tool_execution_end: ({ toolCallId, outcome, result, at }) =>
      this.#setCall(toolCallId, { state: outcome, result, endedAt: at }),
    late_result: ({ toolCallId, toolName, outcome, result, at }) => {
      const call = this.#calls.get(toolCallId)
      if (call?.endedAt !== undefined) call.late = { at, outcome, result }
      for (const [id, wait] of this.#waiting)
        if (wait.toolCallId === toolCallId) this.#waiting.delete(id)
      this.#note(at, `${toolName} ended after its outcome was recorded as unknown: ${outcome}.`)
    },
    call_reset: ({ toolCallId }) => this.#setCall(toolCallId, { state: 'requested' }),
    interrupt_opened: (event) => {
      const { id: interruptId, toolCallId, kind, request } = event.interrupt
      const write = 'write' in event ? event.write : undefined
      // A question about a call that has ended without a known outcome does not change the call.
      if (!write && this.#calls.get(toolCallId)?.endedAt === undefined)
        this.#setCall(toolCallId, { state: 'waiting' })
      if ('parsed' in event) this.#setParsed(toolCallId, event.parsed?.arguments)
      const reason = isPlainObject(request) ? request['reason'] : undefined
      this.#waiting.set(interruptId, {
        for:
          kind === 'approval' || kind === 'in_doubt'
            ? 'person'
            : kind === 'input'
              ? 'client'
              : kind,
        since: event.at,
        until: 'expiresAt' in event ? event.expiresAt : undefined,
        interruptId,
        toolCallId,
        toolName: write?.toolName ?? this.#calls.get(toolCallId)?.toolName,
        reason: typeof reason === 'string' ? reason : undefined,
      })
      // The log does not say again that the thread waits if it has not said since that it runs.
      const isRunning = [...this.#calls.values()].some(({ state }) => state === 'running')
      if (this.#logged === 'waiting' && !isRunning) this.#view.status = 'waiting'
    },
    interrupt_answered: ({ interruptId }) => {
      const wait = this.#waiting.get(interruptId)
      if (!wait) return
      this.#waiting.delete(interruptId)
      const call = this.#calls.get(wait.toolCallId ?? '')
      if (!call || call.endedAt !== undefined) return
      if (this.#waiting.size === 0) this.#view.status = 'queued'
      if (wait.toolCallId !== undefined) this.#setCall(wait.toolCallId, { state: 'requested' })
    },

    subagent_created: ({ reference, name, title, at, toolCallId }) => {
      const child = { threadId: reference, name, title, createdAt: at, status: 'running' } as const
      this.#children.set(reference, child)
      if (toolCallId !== undefined) this.#setCall(toolCallId, { childId: reference })
    },
    subagent_updated: ({ reference, status, statusText }) => {
      const before = this.#children.get(reference)
      // While a child waits for a person, its session continues, so its text stays.
      const goesOn = before?.status !== 'idle' && status !== 'idle'
      const earlierText = goesOn ? before?.statusText : undefined
      this.#setChild(reference, { status, statusText: statusText ?? earlierText })
    },
    subagent_ended: ({ reference, outcome }) =>
      this.#setChild(reference, { status: outcome, statusText: undefined }),

    agent_handoff: ({ at, toAgentId }) =>
      // The id of an agent ends with its side of the conversation (`/a` or `/b`), which does not interest readers.
      this.#note(at, `Handed over to ${toAgentId.replace(/\/[ab]$/, '')}.`),
    context_compacted: ({ at }) =>
      this.#note(at, 'Earlier messages were replaced by a summary in what the model sees.'),
    gate_decided: ({ at, decision, reasonCodes = [] }) => {
      if (decision === 'repair') this.#note(at, `Not delivered yet: ${reasonCodes.join(', ')}.`)
      // A session that was stopped also fails safe; nothing was kept back if no gate checks its answers.
      const isKeptBack = this.#items.some(
        (item) => item.type === 'message' && item.delivery === 'pending',
      )
      if (decision === 'fail_safe' && isKeptBack)
        this.#note(at, `Not delivered: ${reasonCodes.join(', ')}.`)
    },
    error_raised: ({ at, code, message, hint }) =>
      void this.#failures.push({ at, code, message, hint }),

    model_requested: () => this.#spend({ requests: 1 }),
    model_answered: ({ logId, usage, costUsd, error }) => {
      this.#counted = logId
      if (usage || !error) this.#spend({ usage: usage ?? {}, costUsd })
    },
    // Nothing to add: the request and the answer of an inference have events of their own.
    inference_recorded: () => {},
    usage_recorded: (event) => {
      const { logId, costUsd }: Partial<RuntimeUsageRecorded> = event
      if (logId !== undefined && logId === this.#counted) return
      this.#spend({ usage: event.usage as JsonObject, costUsd }) // the log is JSON
    },

    agent_registered: nothing,
    step_end: nothing,
    reasoning_delta: nothing,
    tool_call_delta: nothing,
    tool_execution_progress: nothing,
    tool_call_hidden: nothing,
    file_written: nothing,
    file_removed: nothing,
    source_added: nothing,
    evidence_added: nothing,
    custom_event: nothing,
    session_stop_requested: nothing,
    immediate_done: nothing,
    stop_requested: nothing,
    turn_cut: ({ at, dropped }) =>
      this.#note(at, dropped ? 'Started again with a new message.' : 'Cut by a new message.'),
    resume_requested: () => this.#giveWork(),
    value_set: nothing,
    env_set: nothing,
    effect_scheduled: nothing,
    effect_started: nothing,
    effect_ended: nothing,
    variables_requested: nothing,
    variables_provided: nothing,
    variables_settled: nothing,
    grant_made: ({ at, tool, by, expiresAt }) =>
      this.#note(at, `${by} allowed ${tool} in this thread until ${timeText(expiresAt)}.`),
    grant_revoked: ({ at, by }) => this.#note(at, `${by} took a grant back.`),
  }

  #addMessage(event: EventOf<'message_added'>): void {
    const { message, at, userId } = event
    const {
      queueId,
      subagentId,
      attachments = [],
    } = event as Partial<Pick<EventOf<'message_queued'>, 'queueId' | 'subagentId' | 'attachments'>> // events from other sources lack these fields
    if (queueId !== undefined) this.#queued.delete(queueId)
    if (message.type === 'tool_result') {
      for (const { toolCallId, result, isError } of message.results) {
        const call = this.#calls.get(toolCallId)
        if (!call || call.endedAt !== undefined) continue
        const state = event.outcomes?.[toolCallId] ?? (isError ? 'failed' : 'success')
        this.#setCall(toolCallId, { state, result, endedAt: at })
      }
      return
    }
    if (event.isSilent) return
    const isAgent = message.type === 'assistant'
    const agentId = isAgent ? (event.agentId ?? this.#agentId) : undefined
    if (isAgent) this.#write()
    const words = wordsOf(message)
    if (!isAgent || words.text !== '' || words.media.length > 0)
      this.#items.push({
        type: 'message',
        at,
        from: isAgent ? 'agent' : 'user',
        agentId,
        userId,
        subagentId,
        ...words,
        attachments,
        delivery: event.delivery,
      })
    if (!isAgent) return
    for (const { toolCallId: id, toolName, arguments: args } of message.toolCalls ?? []) {
      const call: ViewCall = {
        type: 'call',
        id,
        at,
        agentId,
        toolName,
        arguments: args,
        state: 'requested',
      }
      this.#items.push(call)
      this.#calls.set(id, call)
    }
  }

  #setCall(toolCallId: string, change: Partial<ViewCall>): void {
    const call = this.#calls.get(toolCallId)
    if (!call) return
    Object.assign(call, change)
    if (change.endedAt === undefined) return
    // Once a call has ended, in whatever way, it no longer waits for anything.
    for (const [id, wait] of this.#waiting)
      if (wait.toolCallId === toolCallId) this.#waiting.delete(id)
  }

  /** Shows the arguments with which a call runs and, if the model sent others, both. */
  #setParsed(toolCallId: string, parsed: unknown): void {
    const call = this.#calls.get(toolCallId)
    if (!call || parsed === undefined) return
    const { arguments: shown, sentArguments: sent = shown } = call
    call.arguments = parsed
    call.sentArguments = isSameJson(sent, parsed) ? undefined : sent
  }

  #setChild(reference: string, change: Pick<ViewChild, 'status' | 'statusText'>): void {
    const child = this.#children.get(reference)
    if (child && child.status !== 'terminated') Object.assign(child, change)
  }

  /** Marks a thread at rest that is given something to do as `queued`, until it begins to work. */
  #giveWork(): void {
    const { status } = this.#view
    if (status !== 'idle' && status !== 'stopped' && status !== 'failed') return
    this.#rest = status
    this.#view.status = 'queued'
  }

  /** Sets what the model has streamed so far; without arguments, nothing. */
  #write(text?: string, delivery?: 'pending'): void {
    Object.assign(this.#view, { draft: text, draftDelivery: delivery })
  }

  #note(at: string, text: string): void {
    this.#items.push({ type: 'note', at, text })
  }

  #end(status: 'terminated' | 'erased'): void {
    this.#view.status = status
    this.#write()
    this.#waiting.clear()
    this.#queued.clear()
  }

  #spend(spent: {
    readonly usage?: JsonObject
    readonly costUsd?: number
    readonly requests?: number
    readonly turns?: number
  }): void {
    const { usage: sum } = this.#view
    const { usage, costUsd, requests = 0, turns = 0 } = spent
    this.#view.usage = {
      inputTokens: sum.inputTokens + Number(usage?.['input_tokens'] ?? 0),
      outputTokens: sum.outputTokens + Number(usage?.['output_tokens'] ?? 0),
      costUsd: usage ? added(sum.costUsd, costUsd) : sum.costUsd,
      requests: sum.requests + requests,
      turns: sum.turns + turns,
    }
  }
}

function nothing(): void {}

/** Adds a cost to a sum; one unknown cost makes the sum unknown. */
function added(sum: CostUsd, costUsd: number | undefined): CostUsd {
  return sum === null || costUsd === undefined ? null : sum + costUsd
}

function wordsOf(message: MessageJSON): Pick<ViewMessage, 'id' | 'text' | 'reasoning' | 'media'> {
  if (message.type === 'tool_result') return { id: message.id, text: '', media: [] }
  const texts: string[] = []
  const thoughts: string[] = []
  const media: string[] = []
  for (const block of message.content) {
    if (block.type === 'text') texts.push(block.text)
    else if (block.type === 'reasoning') thoughts.push(block.text)
    else media.push(block.type)
  }
  const reasoning = thoughts.length > 0 ? thoughts.join('') : undefined
  return { id: message.id, text: texts.join(''), reasoning, media }
}

const UNDO_NOTE: Readonly<Record<EventOf<'write_undone'>['status'], string>> = {
  done: 'undone, because the session failed.',
  failed: 'undoing it failed.',
  skipped: 'not undone: it has no rollback.',
  manual: 'not undone: a person has to do that.',
  impossible: 'not undone: that is impossible.',
  in_doubt: 'not undone: it is unknown whether it happened.',
  unknown: 'it is unknown whether it was undone.',
}

/** A time that people read, to the minute. */
function timeText(at: string): string {
  return `${at.slice(0, 16).replace('T', ' ')} UTC`
}
