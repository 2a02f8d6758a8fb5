import { type LLMRequest, type Message, messageToJSON, type Turn, UPPError } from '@skein/ai'
import { type JsonObject, messageOf, uuidV7 } from '@skein/base'
import { EVENT_VERSION, toThreadUsage, deltaOf, frameOf } from '@skein/runtime/serving'
import { type RuntimeEvent } from '@skein/runtime'

/** How a call or run ended. */
export type End = { readonly turn: Turn } | { readonly error: unknown }

/** One request to a model. */
interface Inference extends Pick<LLMRequest, 'messages' | 'tools' | 'params'> {
  readonly at: number
  readonly provider: string
  readonly model: string
  readonly system?: string
  readonly structure?: LLMRequest['structure']
  readonly config?: LLMRequest['config']
}

/** What is recorded of one call of `llm()`, or one run of `agent()`, until it ends. */
export class InspectedCall {
  readonly agent: string
  readonly startedAt: number = Date.now()
  readonly inferences: Inference[] = []
  readonly #system: string | undefined

  constructor(name: string, system?: string) {
    // The page uses the name of an agent in links, so characters other than letters, digits, _ and - are replaced.
    this.agent = name.replaceAll(/[^\w-]+/g, '_').slice(0, 64) || 'llm'
    this.#system = system
  }

  ask(inference: Omit<Inference, 'at'>): void {
    const system = inference.system ?? this.#system
    // The list is copied, because the caller may add messages to it later.
    this.inferences.push({
      ...inference,
      system,
      messages: [...inference.messages],
      at: Date.now(),
    })
  }
}

/** Turns a recorded call into the events of an ordinary thread, so that all code that shows threads can show it. */
export class InspectedThread {
  readonly events: RuntimeEvent[] = []
  readonly blobs: Map<string, Uint8Array> = new Map()
  readonly #id: string
  readonly #recording: InspectedCall
  readonly #clean: <T>(value: T) => T
  readonly #turnId: string = uuidV7()
  readonly #stored = new Map<string, Message>()
  readonly #toolNames = new Map<string, string>()
  #previous: { logId: string; frame: string; messageIds: string[] } | undefined
  #stepId = ''

  constructor(id: string, recording: InspectedCall, clean: <T>(value: T) => T) {
    this.#id = id
    this.#recording = recording
    this.#clean = clean
  }

  write(end: End): { events: readonly RuntimeEvent[]; blobs: ReadonlyMap<string, Uint8Array> } {
    const { agent, startedAt, inferences } = this.#recording
    const at = timeText(startedAt)
    const agentId = `${agent}/a`
    const threadId = this.#id
    const turnId = this.#turnId
    this.events.push(
      { type: 'thread_created', at, threadId, agent, version: EVENT_VERSION, depth: 0 },
      {
        type: 'agent_registered',
        at,
        agent: { agent_id: agentId, agent_name: agent, created_at: at },
      },
      { type: 'session_start', at, sessionId: threadId, agent },
    )
    const turn = 'turn' in end ? end.turn : undefined
    const first = inferences[0]?.messages ?? []
    const firstIds = new Set(first.map(({ id }) => id))
    const newMessages = (turn?.messages ?? inferences.at(-1)?.messages ?? []).filter(
      ({ id }) => !firstIds.has(id),
    )
    for (const message of first) this.#history(message)
    this.events.push({ type: 'turn_start', at, turnId, agentId, side: 'a' })
    let cycle = 0
    for (const message of newMessages)
      if (message.type === 'assistant') this.#answered(message, cycle++, turn)
      else this.#history(message, turn)
    if (this.#stepId !== '')
      this.events.push({ type: 'step_end', at: this.#last(), turnId, stepId: this.#stepId })
    this.#end(end, inferences[cycle])
    return this
  }

  /** Writes a message that the model was given, or the results of its calls. */
  #history(message: Message, turn?: Turn): void {
    const at = timeText(message.timestamp)
    const turnId = this.#turnId
    if (message.type === 'tool_result') {
      for (const { toolCallId, result, isError = false } of message.results) {
        const toolName = this.#toolNames.get(toolCallId) ?? 'tool'
        const durationMs = turn?.toolExecutions.find(
          (one) => one.toolCallId === toolCallId,
        )?.duration
        const outcome = isError ? 'failed' : 'success'
        this.events.push({
          type: 'tool_execution_end',
          at,
          turnId,
          toolCallId,
          toolName,
          outcome,
          result,
          durationMs,
        })
      }
      return
    }
    this.#stored.set(message.id, message)
    const side = message.type === 'user' ? 'b' : 'a'
    const agentId = message.type === 'user' ? undefined : `${this.#recording.agent}/a`
    const fields = { message: messageToJSON(message), side, agentId } as const
    this.events.push({ type: 'message_added', at, turnId: message.id, ...fields })
    if (message.type === 'assistant') this.#called(message)
  }

  #called(message: Extract<Message, { type: 'assistant' }>): void {
    const at = timeText(message.timestamp)
    for (const { toolCallId, toolName, arguments: args } of message.toolCalls ?? []) {
      this.#toolNames.set(toolCallId, toolName)
      const call = { toolCallId, toolName, arguments: args, epoch: 1 }
      this.events.push({ type: 'tool_execution_start', at, turnId: this.#turnId, ...call })
    }
  }

  /** Writes an answer of the model in this call: the request, the answer and the tokens used. */
  #answered(message: Extract<Message, { type: 'assistant' }>, cycle: number, turn?: Turn): void {
    const { agent, inferences } = this.#recording
    const turnId = this.#turnId
    const at = timeText(message.timestamp)
    const inference = inferences[cycle]
    const logId = this.#step(inference, at)
    const used = turn?.usageByCycle[cycle]
    const usage = used && toThreadUsage(used)
    const costUsd = used?.costUsd
    const isLast = message.id === turn?.response.id
    const finishReason = isLast ? turn.stopReason : undefined
    if (logId !== undefined && inference)
      this.events.push({
        type: 'model_answered',
        at,
        logId,
        durationMs: Math.max(0, message.timestamp.getTime() - inference.at),
        messageId: message.id,
        usage: usage && ({ ...usage } as JsonObject),
        costUsd,
        finishReason,
      })
    this.#stored.set(message.id, message)
    this.events.push({
      type: 'message_added',
      at,
      turnId,
      stepId: this.#stepId,
      side: 'a',
      agentId: `${agent}/a`,
      message: messageToJSON(message),
      modelName: inference?.model,
      providerName: inference?.provider,
      usage,
      costUsd,
      finishReason,
    })
    this.#called(message)
  }

  /** Begins the step of an inference and writes the request as it was sent; returns the id of the request. */
  #step(asked: Inference | undefined, answeredAt: string): string | undefined {
    const turnId = this.#turnId
    const at = asked ? timeText(asked.at) : answeredAt
    if (this.#stepId !== '')
      this.events.push({ type: 'step_end', at: this.#last(), turnId, stepId: this.#stepId })
    const stepId = (this.#stepId = uuidV7())
    this.events.push({
      type: 'step_start',
      at,
      turnId,
      stepId,
      side: 'a',
      attempt: 1,
      epoch: 1,
    })
    if (!asked) return undefined
    const { system = null, params, structure, messages, provider, model } = asked
    const tools = asked.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    const frame = frameOf(
      this.#clean({
        system,
        tools,
        params: params as JsonObject,
        structure: structure as JsonObject | undefined,
      }),
    )
    this.blobs.set(frame.hash, frame.bytes)
    const logId = uuidV7()
    const delta = deltaOf(this.#previous, messages, (id) => this.#stored.get(id))
    const earlierIds = this.#previous?.messageIds.slice(0, delta.previous?.keeps ?? 0) ?? []
    const newIds = delta.adds.map((add) => (typeof add === 'string' ? add : String(add['id'])))
    this.#previous = { logId, frame: frame.hash, messageIds: [...earlierIds, ...newIds] }
    this.events.push({
      type: 'model_requested',
      at,
      logId,
      stepId,
      turnId,
      attempt: 1,
      side: 'a',
      prompt: this.#recording.agent,
      provider,
      model,
      frame: frame.hash,
      ...delta,
    })
    return logId
  }

  #end(end: End, unanswered: Inference | undefined): void {
    const turnId = this.#turnId
    const sessionId = this.#id
    const at = timeText(Date.now())
    if ('turn' in end) {
      const { text } = end.turn.response
      this.events.push(
        { type: 'turn_end', at, turnId, outcome: 'completed', reason: 'response' },
        {
          type: 'session_end',
          at,
          sessionId,
          outcome: 'completed',
          reason: 'response',
          message: text,
        },
        { type: 'status_changed', at, status: 'idle' },
      )
      return
    }
    const { error } = end
    const code = error instanceof UPPError ? error.code : 'ERROR'
    const message = messageOf(error)
    const logId = unanswered && this.#step(unanswered, at)
    if (logId !== undefined && unanswered)
      this.events.push({
        type: 'model_answered',
        at,
        logId,
        durationMs: Math.max(0, Date.now() - unanswered.at),
        error: { code, message },
      })
    this.events.push(
      { type: 'error_raised', at, code, message, turnId },
      { type: 'turn_end', at, turnId, outcome: 'failed', reason: code },
      { type: 'session_end', at, sessionId, outcome: 'failed', reason: code, message },
      { type: 'status_changed', at, status: 'failed' },
    )
  }

  #last(): string {
    return this.events.at(-1)?.at ?? timeText(this.#recording.startedAt)
  }
}

function timeText(time: number | Date): string {
  return new Date(time).toISOString()
}
