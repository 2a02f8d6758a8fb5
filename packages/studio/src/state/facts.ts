import type { NumberedEvent } from '@skein/runtime'

type AnyEvent = NumberedEvent['event']
type EventOf<Type extends AnyEvent['type']> = Extract<AnyEvent, { type: Type }>

/** What a gate decided. */
export interface GateVerdict {
  readonly seq: number
  readonly at: string
  readonly gate: string
  readonly decision: EventOf<'gate_decided'>['decision']
  readonly reasonCodes: readonly string[]
  readonly toolCallId?: string
}

/** Evidence on which gates may base their decisions. */
export interface EvidenceFact {
  readonly seq: number
  readonly at: string
  readonly evidenceId: string
  readonly kind: string
  readonly summary?: string
  readonly data?: unknown
  readonly toolCallId?: string
}

/** Details of a call that are in the log but not in `ViewCall`. */
export interface CallFacts {
  /** The number of the event that contains the call. */
  readonly seq: number
  readonly stepId?: string
  readonly startedAt?: string
  readonly durationMs?: number
  readonly progress?: unknown
  readonly verdicts: readonly GateVerdict[]
  readonly evidence: readonly EvidenceFact[]
  readonly interrupt?: {
    readonly id: string
    readonly kind: string
    readonly openedAt: string
    readonly expiresAt?: string
    readonly request?: unknown
  }
  /** If the call waited for an answer: who answered, when and how. */
  readonly answer?: {
    readonly type: string
    readonly at: string
    readonly by?: string
    readonly reason?: string
  }
  /** If only the beginning of the result was loaded: the number of the event that contains the whole result. */
  readonly wholeAt?: number
  /** The same for a result that came after the outcome of the call had been recorded as unknown. */
  readonly lateWholeAt?: number
  /** The id of the call with which a person replaced this one. */
  readonly changedTo?: string
  readonly changedFrom?: string
}

/** Details of a message that are in the log but not in `ViewMessage`. */
export interface MessageFacts {
  readonly seq: number
  readonly turnId: string
  readonly stepId?: string
  readonly modelName?: string
  readonly usage?: Readonly<Record<string, unknown>>
  readonly costUsd?: number
  readonly finishReason?: string
  /** The blocks of the message that are not text: pictures, documents, sounds. */
  readonly media: readonly Readonly<Record<string, unknown>>[]
}

/** A message that only models see. */
export interface SilentMessage {
  readonly seq: number
  readonly id: string
  readonly at: string
  readonly text: string
}

/** What a model has streamed so far of its next message. */
export interface Draft {
  readonly agentId: string
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly {
    readonly id: string
    readonly toolName: string
    readonly argumentsText: string
  }[]
}

/** A request to a model. */
export interface RequestFacts {
  readonly seq: number
  readonly logId: string
  readonly stepId: string
  readonly at: string
  readonly model: string
  readonly durationMs?: number
  readonly usage?: Readonly<Record<string, unknown>>
  readonly costUsd?: number
}

/** Details of a thread that Studio shows in addition to its `ThreadView`. */
export interface Facts {
  readonly calls: ReadonlyMap<string, CallFacts>
  readonly messages: ReadonlyMap<string, MessageFacts>
  readonly silent: readonly SilentMessage[]
  readonly draft?: Draft
  /** Names of the sides, by agent id. */
  readonly agents: ReadonlyMap<string, string>
  readonly verdicts: readonly GateVerdict[]
  readonly evidence: readonly EvidenceFact[]
  readonly requests: readonly RequestFacts[]
  /** The queue ids of queued messages that can be taken back, by message id. */
  readonly queueIds: ReadonlyMap<string, string>
  /** The ids of children for which their parent does not wait. */
  readonly background: ReadonlySet<string>
  readonly files: ReadonlyMap<string, { readonly mediaType: string; readonly sizeBytes: number }>
  /** Tokens that came from caches of vendors. */
  readonly cachedTokens: number
  /** How often grants (permissions for a tool that last) were made or revoked. */
  readonly grantChanges: number
}

/** How long models have worked in a thread, in ms: the time that Studio shows for a thread, everywhere. */
export function modelTime({ requests }: Pick<Facts, 'requests'>): number {
  return requests.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0)
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Collects, from the events of one thread, the details that only Studio shows. `ThreadView` of the runtime has what
 * every program shows of a thread. As with that view, the first events alone give the state at an earlier time.
 */
export class FactsFold {
  readonly #calls = new Map<string, CallFacts>()
  readonly #messages = new Map<string, MessageFacts>()
  readonly #silent: SilentMessage[] = []
  #draft: Draft | undefined
  readonly #agents = new Map<string, string>()
  readonly #verdicts: GateVerdict[] = []
  readonly #evidence: EvidenceFact[] = []
  readonly #requests: Writable<RequestFacts>[] = []
  readonly #queueIds = new Map<string, string>()
  readonly #background = new Set<string>()
  readonly #files = new Map<string, { mediaType: string; sizeBytes: number }>()
  #cachedTokens = 0
  #grantChanges = 0
  #agentId = ''
  readonly #interrupts = new Map<string, string>()

  /** The details after all events pushed so far. */
  get facts(): Facts {
    return {
      calls: new Map(this.#calls),
      messages: new Map(this.#messages),
      silent: [...this.#silent],
      draft: this.#draft,
      agents: this.#agents,
      verdicts: [...this.#verdicts],
      evidence: [...this.#evidence],
      requests: [...this.#requests],
      queueIds: this.#queueIds,
      background: this.#background,
      files: this.#files,
      cachedTokens: this.#cachedTokens,
      grantChanges: this.#grantChanges,
    }
  }

  /** Whether a model has streamed something that is not in the log yet. */
  get hasDraft(): boolean {
    return this.#draft !== undefined
  }

  push(event: AnyEvent, seq: number, isCut?: boolean): void {
    switch (event.type) {
      case 'agent_registered':
        this.#agents.set(event.agent.agent_id, event.agent.agent_name)
        return
      case 'session_end':
        this.#draft = undefined
        return
      case 'turn_start':
        this.#agentId = event.agentId
        this.#draft = undefined
        return
      case 'step_start':
      case 'step_reset':
      case 'step_failed':
      case 'turn_end':
        this.#draft = undefined
        return
      case 'text_delta':
        return this.#write({ text: (this.#draft?.text ?? '') + event.text })
      case 'reasoning_delta':
        return this.#write({ reasoning: (this.#draft?.reasoning ?? '') + event.text })
      case 'tool_call_delta':
        return this.#writeCall(event)
      case 'message_queued':
        if (event.metadata?.['from'] !== 'parent')
          this.#queueIds.set(event.message.id, event.queueId)
        return
      case 'message_added':
        if (isCut && event.message.type === 'tool_result')
          for (const { toolCallId } of event.message.results)
            if (this.#calls.get(toolCallId)?.durationMs === undefined)
              this.#setCall(toolCallId, seq, { wholeAt: seq })
        return this.#addMessage(event, seq)
      case 'tool_execution_start':
        return this.#setCall(event.toolCallId, seq, { startedAt: event.at })
      case 'tool_execution_progress':
        return this.#setCall(event.toolCallId, seq, { progress: event.output })
      case 'tool_execution_end':
        return this.#setCall(event.toolCallId, seq, {
          durationMs: event.durationMs,
          wholeAt: isCut ? seq : undefined,
        })
      case 'late_result':
        if (event.effectId !== undefined) return
        return this.#setCall(event.toolCallId, seq, { lateWholeAt: isCut ? seq : undefined })
      case 'call_changed':
        this.#setCall(event.toolCallId, seq, { changedTo: event.changedTo })
        return this.#setCall(event.changedTo, seq, { changedFrom: event.toolCallId })
      case 'interrupt_opened':
        return this.#wait(event, seq)
      case 'interrupt_answered':
        return this.#answer(event, seq)
      case 'gate_decided':
        return this.#judge(event, seq)
      case 'evidence_added':
        return this.#prove(event, seq)
      case 'model_requested':
        this.#requests.push({ seq, ...requestOf(event) })
        return
      case 'model_answered':
        return this.#answered(event)
      case 'subagent_created':
        if (event.isBlocking === false) this.#background.add(event.reference)
        return
      case 'file_written':
        this.#files.set(event.path, { mediaType: event.mediaType, sizeBytes: event.sizeBytes })
        return
      case 'file_removed':
        this.#files.delete(event.path)
        return
      case 'grant_made':
      case 'grant_revoked':
        this.#grantChanges += 1
        return
      default:
        event satisfies WithoutFacts
    }
  }

  #write(change: Partial<Draft>): void {
    const before = this.#draft ?? { agentId: this.#agentId, text: '', reasoning: '', calls: [] }
    this.#draft = { ...before, ...change }
  }

  #writeCall({ toolCallId: id, toolName, argumentsText }: EventOf<'tool_call_delta'>): void {
    const calls = this.#draft?.calls ?? []
    const earlier = calls.find((call) => call.id === id)
    const next = earlier
      ? calls.map((call) =>
          call.id === id ? { ...call, argumentsText: call.argumentsText + argumentsText } : call,
        )
      : [...calls, { id, toolName, argumentsText }]
    this.#write({ calls: next })
  }

  #addMessage(event: EventOf<'message_added'>, seq: number): void {
    const { message, at, turnId, isSilent } = event
    if (message.type === 'assistant') this.#draft = undefined
    if (message.type === 'tool_result') return
    const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    if (isSilent) this.#silent.push({ seq, id: message.id, at, text })
    const media = message.content.filter(({ type }) => type !== 'text' && type !== 'reasoning')
    const { stepId, costUsd } = event as { stepId?: string; costUsd?: number } // events from other sources lack these fields
    this.#messages.set(message.id, {
      seq,
      turnId,
      stepId,
      modelName: event.modelName,
      usage: event.usage as Readonly<Record<string, unknown>> | undefined, // the log is JSON
      costUsd,
      finishReason: event.finishReason,
      media: media.map((block) => ({ ...block })),
    })
    if (message.type !== 'assistant') return
    for (const { toolCallId } of message.toolCalls ?? [])
      this.#setCall(toolCallId, seq, { seq, stepId })
  }

  #setCall(id: string, seq: number, change: Partial<CallFacts>): void {
    const before = this.#calls.get(id) ?? { seq, verdicts: [], evidence: [] }
    this.#calls.set(id, { ...before, ...change })
  }

  #wait(event: EventOf<'interrupt_opened'>, seq: number): void {
    const { id, toolCallId, kind, request } = event.interrupt
    this.#interrupts.set(id, toolCallId)
    const expiresAt = 'expiresAt' in event ? event.expiresAt : undefined
    this.#setCall(toolCallId, seq, {
      interrupt: { id, kind, openedAt: event.at, expiresAt, request },
      answer: undefined,
    })
  }

  #answer(
    { interruptId, answer, answeredBy: by, at }: EventOf<'interrupt_answered'>,
    seq: number,
  ): void {
    const toolCallId = this.#interrupts.get(interruptId)
    if (toolCallId === undefined) return
    const reason = 'reason' in answer ? answer.reason : undefined
    this.#setCall(toolCallId, seq, { answer: { type: answer.type, at, by, reason } })
  }

  #judge(event: EventOf<'gate_decided'>, seq: number): void {
    const { at, gate, decision, reasonCodes = [], toolCallId } = event
    const verdict: GateVerdict = { seq, at, gate, decision, reasonCodes, toolCallId }
    this.#verdicts.push(verdict)
    if (toolCallId !== undefined)
      this.#setCall(toolCallId, seq, {
        verdicts: [...(this.#calls.get(toolCallId)?.verdicts ?? []), verdict],
      })
  }

  #prove(event: EventOf<'evidence_added'>, seq: number): void {
    const { at, evidenceId, kind, summary, data, toolCallId } = event
    const fact: EvidenceFact = { seq, at, evidenceId, kind, summary, data, toolCallId }
    this.#evidence.push(fact)
    if (toolCallId !== undefined)
      this.#setCall(toolCallId, seq, {
        evidence: [...(this.#calls.get(toolCallId)?.evidence ?? []), fact],
      })
  }

  #answered({ logId, durationMs, usage, costUsd }: EventOf<'model_answered'>): void {
    const index = this.#requests.findLastIndex((request) => request.logId === logId)
    const request = this.#requests[index]
    if (request) this.#requests[index] = { ...request, durationMs, usage, costUsd }
    this.#cachedTokens += Number(usage?.['cache_read_tokens'] ?? usage?.['cached_tokens'] ?? 0)
  }
}

function requestOf({
  logId,
  stepId,
  at,
  provider,
  model,
}: EventOf<'model_requested'>): Omit<RequestFacts, 'seq'> {
  return { logId, stepId, at, model: `${provider}/${model}` }
}

/** Events without details that Studio alone shows. */
// prettier-ignore
type WithoutFacts = Extract<AnyEvent, { type:
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_failing' | 'write_undone' | 'undo_decided' | 'message_unqueued' |
  'message_updated' | 'message_removed' | 'delivery_changed' | 'call_reset' | 'subagent_updated' |
  'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'error_raised' |
  'inference_recorded' | 'usage_recorded' | 'step_end' | 'tool_call_hidden' | 'source_added' |
  'custom_event' | 'session_stop_requested' | 'immediate_done' | 'stop_requested' | 'turn_cut' |
  'resume_requested' | 'value_set' | 'env_set' | 'effect_scheduled' | 'effect_started' |
  'effect_ended' | 'variables_requested' | 'variables_provided' | 'variables_settled'
}>
