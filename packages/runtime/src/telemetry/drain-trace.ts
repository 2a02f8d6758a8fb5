import type { Middleware } from '@skein/ai'
import { type SpanAttributes, toolAttributes } from '@skein/ai/middleware'
import type { RuntimeEvent } from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Commit, ThreadChange } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'
import { type OpenSpan, parseTraceparent, type Telemetry } from './telemetry.ts'

/**
 * The spans and measurements of one drain, made from the events that it commits.
 *
 * A span lives no longer than its drain: a thread may wait for days and continue in another process, and no SDK
 * keeps a span that long. So a session has one `invoke_agent` span per drain. The first of these spans is written
 * to the log with `session_start`; later ones are its children, even after a restart. `wait` spans show the time
 * between them; they are made when the wait is over.
 *
 * Every message that the drain queues, in its own thread or in another, is stored with the span that caused it. The
 * span of the session that takes the message is a child of that span. So the trace connects child threads with the
 * call that created them, and their reports with the parent thread.
 */
export class DrainTrace {
  readonly #telemetry: Telemetry
  readonly #head: ThreadHead
  readonly #state: () => KernelState
  #session: OpenSpan | undefined
  /** The session that has ended last. */
  #ended: OpenSpan | undefined
  #turn: OpenSpan | undefined
  readonly #tools = new Map<string, OpenSpan>()
  readonly #effects = new Map<string, OpenSpan>()
  /** The latest request to a model, kept because the event of its answer does not name the model. */
  #asked: EventOf<'model_requested'> | undefined

  constructor(telemetry: Telemetry, head: ThreadHead, state: () => KernelState) {
    this.#telemetry = telemetry
    this.#head = head
    this.#state = state
    telemetry.metrics.drains.add(1)
  }

  /** Runs an action of the work on a thread. Spans of user code become children of the turn's span, if any. */
  perform<T>(work: () => T): T {
    return this.#telemetry.api.context.with(this.#current(), work)
  }

  /** Runs user code. Its spans become children of the span of the call or scheduled work (effect) with this id. */
  run<T>(id: string | undefined, work: () => T): T {
    const span = this.#tools.get(id ?? '') ?? this.#effects.get(id ?? '')
    return this.#telemetry.api.context.with(span?.context ?? this.#current(), work)
  }

  /** Returns the middleware that makes the `chat` span of an inference, as a child of the turn's span. */
  middleware(): Middleware {
    const attributes = { 'gen_ai.conversation.id': this.#head.id }
    return this.#telemetry.inferenceMiddleware(this.#open(), attributes)
  }

  /** Writes the id of the current span into new sessions and queued messages, before they are committed. */
  stamp<
    T extends {
      readonly events: readonly RuntimeEvent[]
      readonly others: readonly ThreadChange[]
    },
  >(write: T): T {
    const events = write.events.map((event) => {
      if (event.type !== 'session_start') return event
      const trace = this.#beginSession(event)
      return trace === undefined ? event : { ...event, trace }
    })
    const trace = this.#causeOf(events)?.traceparent
    if (trace === undefined) return write.events === events ? write : { ...write, events }
    const withTrace = (event: RuntimeEvent): RuntimeEvent =>
      event.type === 'message_queued' && event.trace === undefined ? { ...event, trace } : event
    const others = write.others.map((change) =>
      change.append ? { ...change, append: change.append.map(withTrace) } : change,
    )
    return { ...write, events: events.map(withTrace), others }
  }

  /** Performs a commit and measures it. Commits without events, e.g. that only set the next wake-up, have no span. */
  async commit<T>({ point, threads }: Commit, work: () => Promise<T>): Promise<T> {
    const { clock, metrics } = this.#telemetry
    const count = threads.reduce((sum, { append = [] }) => sum + append.length, 0)
    // The end of a session may have been reported to telemetry before this commit writes it (see `Write.joinsNext`).
    const isEnd = threads.some(({ append = [] }) =>
      append.some(({ type }) => type === 'session_end'),
    )
    const isOpen = this.#session || this.#state().session
    const span =
      count > 0 && (isOpen || (isEnd && this.#ended))
        ? this.#start('skein.commit', {
            parent: isOpen ? this.#open() : this.#ended?.context,
            attributes: { 'skein.commit.point': point, 'skein.commit.events': count },
          })
        : undefined
    const startedAt = clock.now()
    try {
      return await work()
    } catch (error) {
      span?.end({}, { error: codeOf(error) })
      throw error
    } finally {
      span?.end()
      metrics.commit.record((clock.now() - startedAt) / 1000, { 'skein.commit.point': point })
    }
  }

  /** Starts and ends spans for events that were, or will be, committed. Called before the thread's state has them. */
  committed(events: readonly RuntimeEvent[]): void {
    for (const event of events) this.#committed(event)
  }

  /** Called when the work on the thread ends or fails. Spans that are still open end here. */
  close(error?: unknown): void {
    const code = error === undefined ? undefined : codeOf(error)
    const state = { 'skein.session.state': error === undefined ? 'waiting' : 'interrupted' }
    for (const span of this.#tools.values()) span.end({}, { error: code })
    for (const span of this.#effects.values()) span.end({}, { error: code })
    this.#turn?.end({}, { error: code })
    this.#session?.end(state, { error: code })
    if (code !== undefined) this.#fail(code)
    this.#telemetry.metrics.drains.add(-1)
  }

  /** The context of the innermost open span; starts no span. */
  #current(): unknown {
    return (this.#turn ?? this.#session)?.context ?? this.#telemetry.api.ROOT_CONTEXT
  }

  /**
   * The context of the turn's span. If the session or turn began earlier, before the thread waited, its
   * span is started here, when a child span is needed, so that work without spans of its own makes none.
   */
  #open(): unknown {
    const { session } = this.#state()
    if (!this.#session && session) {
      const parent = this.#telemetry.contextOf(session.trace)
      const attributes = { ...this.#sessionAttributes(session), 'skein.session.continued': true }
      this.#session = this.#start(`invoke_agent ${session.agent}`, { parent, attributes })
    }
    if (!this.#turn && session?.turn) this.#beginTurn(session.turn.id, session.turn.side)
    return this.#current()
  }

  #beginSession(event: EventOf<'session_start'>): string | undefined {
    this.#session?.end()
    const { queue, lastSession } = this.#state()
    const traces = new Set(queue.flatMap(({ trace }) => trace ?? []))
    // After a handoff or a resume no message may be queued; the session then continues the trace of the last session.
    const [first = lastSession?.trace, ...others] = traces
    const links = others.flatMap((trace) => parseTraceparent(trace) ?? [])
    this.#session = this.#start(`invoke_agent ${event.agent}`, {
      parent: this.#telemetry.contextOf(first),
      attributes: this.#sessionAttributes({ id: event.sessionId, agent: event.agent }),
      links,
    })
    return this.#session.traceparent
  }

  #sessionAttributes({ id, agent }: { readonly id: string; readonly agent: string }) {
    const { id: threadId, parentId, tenant } = this.#head
    return {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': agent,
      'gen_ai.conversation.id': threadId,
      'skein.session.id': id,
      'skein.thread.parent_id': parentId ?? undefined,
      'skein.tenant': tenant,
    }
  }

  #beginTurn(id: string, side: string): void {
    this.#turn?.end()
    const parent = this.#session?.context
    const attributes = { 'skein.turn.id': id, 'skein.turn.side': side }
    this.#turn = this.#start('skein.turn', { parent, attributes })
  }

  /** Returns the span that caused a commit: that of the call that it ends or makes wait, else that of the turn. */
  #causeOf(events: readonly RuntimeEvent[]): OpenSpan | undefined {
    for (const event of events) {
      const callId =
        event.type === 'interrupt_opened'
          ? event.interrupt.toolCallId
          : event.type === 'tool_execution_end'
            ? event.toolCallId
            : undefined
      const span = callId === undefined ? undefined : this.#tools.get(callId)
      if (span) return span
      const effect = event.type === 'effect_ended' && this.#effects.get(event.effectId)
      if (effect) return effect
    }
    this.#open()
    return this.#turn ?? this.#session
  }

  #committed(event: RuntimeEvent): void {
    const { metrics } = this.#telemetry
    switch (event.type) {
      case 'session_end': {
        const { outcome, reason } = event
        const isFailed = outcome === 'failed'
        const attributes = { 'skein.session.state': outcome, 'skein.session.reason': reason }
        this.#turn?.end()
        this.#session?.end(attributes, { error: isFailed ? reason : undefined })
        this.#ended = this.#session ?? this.#ended
        this.#turn = this.#session = undefined
        if (isFailed) this.#fail(reason)
        return
      }
      case 'turn_start':
        return this.#beginTurn(event.turnId, event.side)
      case 'turn_end': {
        const { outcome, reason = outcome } = event
        const error = outcome === 'failed' ? reason : undefined
        this.#open()
        this.#turn?.end({ 'skein.turn.outcome': outcome, 'skein.turn.reason': reason }, { error })
        this.#turn = undefined
        const startedAt = this.#state().session?.turn?.startedAt ?? event.at
        return metrics.turn.record(secondsBetween(startedAt, event.at), {
          'gen_ai.agent.name': this.#state().agent,
          'skein.turn.outcome': outcome,
        })
      }
      case 'message_added': {
        const message = this.#state().queue.find(({ queueId }) => queueId === event.queueId)
        const agent = { 'gen_ai.agent.name': this.#state().agent }
        if (message) metrics.queue.record(secondsBetween(message.at, event.at), agent)
        if (event.usage) this.#spent(event, { cost: event.costUsd })
        return
      }
      case 'usage_recorded':
        return this.#spent(event, { cost: event.costUsd })
      case 'inference_recorded': {
        // If there is a `messageId`, the `message_added` event of the same commit counts the usage.
        if (event.messageId !== undefined) return
        const { inputTokens, outputTokens } = event.usage as Partial<Record<string, number>>
        const usage = { input_tokens: inputTokens, output_tokens: outputTokens }
        return this.#spent({ usage }, { cost: event.costUsd })
      }
      case 'model_requested':
        this.#asked = event
        return
      case 'model_answered': {
        const { durationMs, error, toolCallId, usage } = event
        if (toolCallId !== undefined && usage) this.#spent({ usage }, { cost: event.costUsd })
        const attributes = this.#modelAttributes()
        if (error) attributes['error.type'] = error.code
        return metrics.inference.record(durationMs / 1000, attributes)
      }
      case 'step_failed':
      case 'error_raised':
        return this.#fail(event.code)
      case 'tool_execution_start':
        return this.#toolStarted(event)
      case 'tool_execution_end':
        return this.#toolEnded(event)
      case 'interrupt_opened': {
        const { kind, toolCallId } = event.interrupt
        this.#tools.get(toolCallId)?.end({ 'skein.call.outcome': 'deferred' })
        this.#tools.delete(toolCallId)
        return metrics.waits.add(1, { 'skein.wait.kind': kind })
      }
      case 'effect_started': {
        const { effectId } = event
        const name = this.#state().effects.get(effectId)?.scheduled.name ?? effectId
        const attributes = {
          'skein.effect.name': name,
          'gen_ai.conversation.id': this.#head.id,
          'skein.tenant': this.#head.tenant,
        }
        this.#effects.set(effectId, this.#start(`skein.effect ${name}`, { attributes }))
        return
      }
      case 'effect_ended': {
        const error = event.outcome === 'failed' ? 'effect_failed' : undefined
        this.#effects.get(event.effectId)?.end({}, { error })
        this.#effects.delete(event.effectId)
        if (error !== undefined) this.#fail(error)
        return
      }
      default:
        event satisfies Untraced
    }
  }

  #toolStarted(event: EventOf<'tool_execution_start'>): void {
    const { toolCallId, toolName } = event
    this.#waited(toolCallId)
    const attributes = {
      ...toolAttributes({ toolCallId, toolName }),
      'gen_ai.conversation.id': this.#head.id,
    }
    const parent = this.#open()
    this.#tools.set(toolCallId, this.#start(`execute_tool ${toolName}`, { parent, attributes }))
  }

  #toolEnded({ toolCallId, outcome }: EventOf<'tool_execution_end'>): void {
    const error = outcome === 'failed' ? 'tool_error' : undefined
    const span = this.#tools.get(toolCallId)
    // A call without a span has not run since this work on the thread began; perhaps its wait is over now.
    if (!span) this.#waited(toolCallId)
    span?.end({ 'skein.call.outcome': outcome }, { error })
    this.#tools.delete(toolCallId)
    if (error !== undefined) this.#fail(error)
  }

  /** Makes the span of a wait that is over: from the time the call began to wait to the answer. */
  #waited(toolCallId: string): void {
    const { interrupts, entries, callPlaces } = this.#state()
    const calls = entries[callPlaces.get(toolCallId) ?? -1]?.calls ?? []
    const call = calls.find((one) => one.call.toolCallId === toolCallId)
    const open = call?.interruptId === undefined ? undefined : interrupts.get(call.interruptId)
    // If the call had started, its wait ended before that and already has its span.
    if (!open || call?.startedEpoch !== undefined) return
    const { openedAt, answeredAt, interrupt, answer } = open
    const kind = interrupt.kind
    const endedAt = answeredAt ?? new Date(this.#telemetry.clock.now()).toISOString()
    const attributes = {
      'skein.wait.kind': kind,
      'skein.wait.answer': answer?.type ?? 'none',
      'gen_ai.tool.name': call?.call.toolName,
      'gen_ai.tool.call.id': toolCallId,
    }
    const startTime = new Date(openedAt)
    const span = this.#start('skein.wait', { parent: this.#open(), attributes, startTime })
    span.end({}, { at: new Date(endedAt) })
    this.#telemetry.metrics.wait.record(secondsBetween(openedAt, endedAt), {
      'skein.wait.kind': kind,
    })
  }

  #spent(
    event: {
      readonly usage?: { readonly input_tokens?: number; readonly output_tokens?: number }
      readonly modelName?: string
      readonly providerName?: string
    },
    { cost }: { readonly cost: number | undefined },
  ): void {
    const { metrics } = this.#telemetry
    const attributes = this.#modelAttributes(event)
    const { input_tokens: input = 0, output_tokens: output = 0 } = event.usage ?? {}
    metrics.tokens.record(input, { ...attributes, 'gen_ai.token.type': 'input' })
    metrics.tokens.record(output, { ...attributes, 'gen_ai.token.type': 'output' })
    if (cost !== undefined) metrics.cost.add(cost, attributes)
  }

  #modelAttributes({
    modelName = this.#asked?.model,
    providerName = this.#asked?.provider,
  }: { readonly modelName?: string; readonly providerName?: string } = {}) {
    const attributes: Record<string, string> = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.agent.name': this.#state().agent,
    }
    if (modelName !== undefined) attributes['gen_ai.request.model'] = modelName
    if (providerName !== undefined) attributes['gen_ai.provider.name'] = providerName
    return attributes
  }

  #fail(code: string): void {
    this.#telemetry.metrics.failures.add(1, { 'error.type': code })
  }

  #start(
    name: string,
    options: { readonly attributes: SpanAttributes } & Parameters<Telemetry['start']>[1],
  ): OpenSpan {
    return this.#telemetry.start(name, options)
  }
}

function secondsBetween(from: string, to: string): number {
  return Math.max(Date.parse(to) - Date.parse(from), 0) / 1000
}

/** Returns the code of an error, or its class; never its message, which may be private. */
function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  if (typeof code === 'string') return code
  return error instanceof Error ? error.name : '_OTHER'
}

/** Events that begin and end no span, and that no metric counts. */
// prettier-ignore
type Untraced = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_failing' | 'write_undone' | 'undo_decided' | 'message_queued' |
  'message_unqueued' | 'message_updated' | 'call_changed' | 'message_removed' |
  'delivery_changed' | 'step_start' | 'step_reset' | 'text_delta' | 'late_result' | 'call_reset' |
  'interrupt_answered' | 'subagent_created' | 'subagent_updated' | 'subagent_ended' |
  'agent_handoff' | 'context_compacted' | 'gate_decided' | 'agent_registered' | 'step_end' |
  'reasoning_delta' | 'tool_call_delta' | 'tool_execution_progress' | 'tool_call_hidden' |
  'file_written' | 'file_removed' | 'source_added' | 'evidence_added' | 'custom_event' |
  'session_stop_requested' | 'immediate_done' | 'stop_requested' | 'turn_cut' |
  'resume_requested' | 'value_set' | 'env_set' | 'effect_scheduled' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
>
