import { canonicalJson, isObject, tryParseJson } from '@skein/base'
import { carried } from '../ai-sdk/carrier.ts'
import { encodeUIMessage } from '../ai-sdk/encode-ui-message.ts'
import type { FileUIPart, TextUIPart, UIMessage, UIMessageChunk } from '../ai-sdk/types.ts'
import { contentOfUrl } from '../bridge/media.ts'
import { fileContent, MessageList } from './message-list.ts'
import {
  AG_UI_VERSION,
  type AgUiContentPart,
  type AgUiEvent,
  type AgUiInterrupt,
  type AgUiKnownEvent,
  type AgUiMessage,
  type AgUiOutcome,
  type AgUiUsage,
} from './types.ts'

/** Settings of an `AgUiStreamEncoder`. */
export interface AgUiStreamOptions {
  readonly threadId: string
  /** The id that the client gave to the run. */
  readonly runId: string
  /** The messages that the client has when the run begins. */
  readonly messages?: readonly AgUiMessage[]
  /** The messages that the run answers; `RUN_STARTED` repeats them for clients that did not send them. */
  readonly asked?: readonly AgUiMessage[]
  /** Whether to send all `messages` to the client first, to replace those that it has. */
  readonly isReplay?: boolean
}

/**
 * Converts one response to the events of one AG-UI run. It reads the chunks of a UI message stream, which
 * `UIStreamEncoder` makes from the events of a thread, so both protocols show the same response:
 *
 *     const chunks = new UIStreamEncoder()
 *     const run = new AgUiStreamEncoder({ threadId, runId, messages })
 *     send(run.start())
 *     for await (const event of events) for (const chunk of chunks.push(event)) send(run.push(chunk))
 *     for (const chunk of chunks.end()) send(run.push(chunk))
 *
 * Ids of messages are derived from turns and calls, so a run that is sent again has the same ids. What AG-UI
 * has no event for (sources, files, application data) is sent as `CUSTOM`.
 */
export class AgUiStreamEncoder {
  readonly #options: AgUiStreamOptions
  readonly #messages: MessageList
  readonly #out: AgUiKnownEvent[] = []
  /** The message ids of open text and reasoning blocks, by kind and chunk id. */
  readonly #blocks = { text: new Map<string, string>(), reasoning: new Map<string, string>() }
  /** Calls whose arguments are being streamed, with the text so far. */
  readonly #inputs = new Map<string, string>()
  /** Calls of this run without a result. */
  readonly #open = new Set<string>()
  /** Questions to people, by call. */
  readonly #interrupts = new Map<string, AgUiInterrupt>()
  readonly #refusals = new Map<string, string>()
  #turnId: string
  #counts = { text: 0, reasoning: 0, step: 0 }
  #step: { readonly name: string; readonly counts: Counts; readonly added: Set<string> } | undefined
  /** The message that holds the calls of the step. */
  #parent: string | undefined
  #isOver = false

  constructor(options: AgUiStreamOptions) {
    this.#options = options
    this.#messages = new MessageList(options.messages ?? [])
    this.#turnId = options.runId
  }

  /** The messages that the client has now. */
  get messages(): readonly AgUiMessage[] {
    return this.#messages.list()
  }

  /** The outcome if the run ended now: what it waits for, and the calls that the client has to run. */
  get outcome(): AgUiOutcome {
    const interrupts = [...this.#interrupts.values()]
    if (interrupts.length > 0) return { type: 'interrupt', interrupts }
    return this.#open.size === 0
      ? { type: 'success' }
      : { type: 'success', pendingToolCallIds: [...this.#open] }
  }

  /** Returns the events with which the run begins. */
  start(): AgUiEvent[] {
    const { threadId, runId, asked = [], isReplay } = this.#options
    const input = asked.length > 0 ? { input: { threadId, runId, messages: asked } } : {}
    this.#send({ type: 'RUN_STARTED', threadId, runId, protocolVersion: AG_UI_VERSION, ...input })
    if (isReplay) this.#snapshot()
    return this.#out.splice(0)
  }

  /** Returns the events for a chunk; often none. The chunks `finish`, `error` and `abort` end the run. */
  push(chunk: UIMessageChunk): AgUiEvent[] {
    if (!this.#isOver) this.#read(chunk)
    return this.#out.splice(0)
  }

  /** Ends a run whose response has no `finish` chunk, for example one that only repeats the messages. */
  end(outcome: AgUiOutcome = this.outcome, usage?: readonly AgUiUsage[]): AgUiEvent[] {
    this.#finish(outcome, usage && { usage })
    return this.#out.splice(0)
  }

  #finish(outcome: AgUiOutcome, usage: { readonly usage?: readonly AgUiUsage[] } = {}): void {
    if (this.#isOver) return
    const { threadId, runId } = this.#options
    this.#endStep()
    this.#isOver = true
    this.#send({ type: 'RUN_FINISHED', threadId, runId, outcome, ...usage })
  }

  #read(chunk: UIMessageChunk): void {
    switch (chunk.type) {
      case 'start':
        if (chunk.messageId !== undefined) this.#beginTurn(chunk.messageId)
        return this.#metadata(chunk.messageMetadata)
      case 'message-metadata':
        return this.#metadata(chunk.messageMetadata)
      case 'start-step':
        return this.#startStep()
      case 'finish-step':
        return this.#endStep()
      case 'reset-step':
        return this.#reset()
      case 'text-start': {
        const messageId = this.#startBlock('text', chunk.id)
        this.#parent = messageId
        const { agent_id: name } = carried(chunk.providerMetadata)
        const nameField = name === undefined ? {} : { name }
        return this.#send({
          type: 'TEXT_MESSAGE_START',
          messageId,
          role: 'assistant',
          ...nameField,
        })
      }
      case 'reasoning-start': {
        const messageId = this.#startBlock('reasoning', chunk.id)
        this.#send({ type: 'REASONING_START', messageId })
        return this.#send({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
      }
      case 'text-delta':
        return this.#delta('text', chunk.id, chunk.delta)
      case 'reasoning-delta':
        return this.#delta('reasoning', chunk.id, chunk.delta)
      case 'text-end':
        if (chunk.citations) this.#custom('citations', chunk.citations)
        return this.#endBlock('text', chunk.id)
      case 'reasoning-end': {
        const entityId = this.#blocks.reasoning.get(chunk.id)
        this.#endBlock('reasoning', chunk.id)
        const { part } = carried(chunk.providerMetadata)
        const encryptedValue = isObject(part) ? part['signature'] : undefined
        if (entityId === undefined || typeof encryptedValue !== 'string') return
        const type = 'REASONING_ENCRYPTED_VALUE'
        return this.#send({ type, subtype: 'message', entityId, encryptedValue })
      }
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-available':
      case 'tool-input-error':
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
      case 'tool-approval-request':
      case 'tool-approval-response':
        return this.#readTool(chunk)
      case 'steering-message':
        return this.#steering(chunk.id, chunk.parts)
      case 'finish': {
        const isCancelled = chunk.finishReason === 'interrupted'
        this.#metadata(chunk.messageMetadata)
        return this.#finish(isCancelled ? { type: 'cancelled' } : this.outcome)
      }
      case 'abort':
        return this.#finish({ type: 'cancelled' })
      case 'error':
        this.#endStep()
        this.#isOver = true
        return this.#send({ type: 'RUN_ERROR', message: chunk.errorText })
      case 'custom':
      case 'file':
      case 'reasoning-file':
      case 'source-url':
      case 'source-document': {
        const { type, ...value } = chunk
        return this.#custom(type, value)
      }
      default: {
        const { type, id, data } = chunk
        if (type === 'data-tp-turn' && id !== undefined) this.#beginTurn(id)
        const name = type.slice('data-'.length)
        return this.#custom(name, data, id)
      }
    }
  }

  #readTool(chunk: ToolChunk): void {
    switch (chunk.type) {
      case 'tool-input-start':
        return this.#startCall(chunk.toolCallId, chunk.toolName)
      case 'tool-input-delta':
        return this.#args(chunk.toolCallId, chunk.inputTextDelta)
      case 'tool-input-available':
      case 'tool-input-error':
        this.#call(chunk)
        if (chunk.type === 'tool-input-error') this.#result(chunk.toolCallId, chunk.errorText, true)
        return
      case 'tool-output-available': {
        const { toolCallId, output, preliminary } = chunk
        if (preliminary) return this.#custom('tool.progress', { toolCallId, output })
        return this.#result(toolCallId, jsonTextOf(output))
      }
      case 'tool-output-error':
        return this.#result(chunk.toolCallId, chunk.errorText, true)
      case 'tool-output-denied': {
        const reason = this.#refusals.get(chunk.toolCallId) ?? 'The call was denied.'
        return this.#result(chunk.toolCallId, reason, true)
      }
      case 'tool-approval-request': {
        const { approvalId: id, toolCallId, reason: message } = chunk
        const messageField = message === undefined ? {} : { message }
        const question = { id, reason: 'tool_call', toolCallId, ...messageField }
        this.#interrupts.set(toolCallId, { ...question, responseSchema: DECISION })
        return
      }
      case 'tool-approval-response':
        for (const [toolCallId, { id }] of this.#interrupts)
          if (id === chunk.approvalId) {
            this.#interrupts.delete(toolCallId)
            if (chunk.reason !== undefined) this.#refusals.set(toolCallId, chunk.reason)
          }
        return
    }
  }

  #beginTurn(turnId: string): void {
    this.#turnId = turnId
    this.#counts = { text: 0, reasoning: 0, step: 0 }
  }

  #startStep(): void {
    this.#endStep()
    const counts = { ...this.#counts }
    const name = `${this.#turnId}:${this.#counts.step++}`
    this.#step = { name, counts, added: new Set() }
    this.#send({ type: 'STEP_STARTED', stepName: name })
  }

  #endStep(): void {
    this.#closeBlocks()
    this.#parent = undefined
    if (this.#step) this.#send({ type: 'STEP_FINISHED', stepName: this.#step.name })
    this.#step = undefined
  }

  #closeBlocks(): void {
    for (const id of this.#blocks.text.keys()) this.#endBlock('text', id)
    for (const id of this.#blocks.reasoning.keys()) this.#endBlock('reasoning', id)
    for (const toolCallId of this.#inputs.keys()) this.#endCall(toolCallId)
  }

  /**
   * Discards the content of the step. AG-UI cannot take back one message, so the client gets all messages
   * without those of the step. Clients keep reasoning messages that a snapshot leaves out, so these are sent
   * empty; the next attempt has the same ids and fills them.
   */
  #reset(): void {
    this.#closeBlocks()
    const step = this.#step
    if (!step) return
    this.#counts = { ...step.counts, step: this.#counts.step }
    this.#parent = undefined
    for (const id of this.#messages.calls(step.added)) this.#open.delete(id)
    for (const id of step.added) this.#messages.discard(id)
    step.added.clear()
    this.#snapshot()
  }

  #snapshot(): void {
    this.#out.push({ type: 'MESSAGES_SNAPSHOT', messages: this.messages })
  }

  /** Remembers that the step added this message. */
  #added(messageId: string): string {
    this.#step?.added.add(messageId)
    return messageId
  }

  #startBlock(kind: BlockKind, id: string): string {
    const messageId = this.#added(`${this.#turnId}:${kind[0]}${this.#counts[kind]++}`)
    this.#blocks[kind].set(id, messageId)
    return messageId
  }

  #delta(kind: BlockKind, id: string, delta: string): void {
    const messageId = this.#blocks[kind].get(id)
    if (messageId === undefined || delta === '') return // AG-UI refuses an empty delta
    const type = kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    this.#send({ type, messageId, delta })
  }

  #endBlock(kind: BlockKind, id: string): void {
    const messageId = this.#blocks[kind].get(id)
    if (messageId === undefined) return
    this.#blocks[kind].delete(id)
    if (kind === 'text') return this.#send({ type: 'TEXT_MESSAGE_END', messageId })
    this.#send({ type: 'REASONING_MESSAGE_END', messageId })
    this.#send({ type: 'REASONING_END', messageId })
  }

  #startCall(toolCallId: string, toolCallName: string): void {
    // The calls of a step share one message, after its text; without this id each call is a message.
    const parentMessageId = (this.#parent ??= this.#added(`${toolCallId}:calls`))
    this.#inputs.set(toolCallId, '')
    this.#open.add(toolCallId)
    this.#send({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId })
  }

  #args(toolCallId: string, delta: string): void {
    const text = this.#inputs.get(toolCallId)
    if (text === undefined || delta === '') return
    this.#inputs.set(toolCallId, text + delta)
    this.#send({ type: 'TOOL_CALL_ARGS', toolCallId, delta })
  }

  #endCall(toolCallId: string): void {
    if (this.#inputs.delete(toolCallId)) this.#send({ type: 'TOOL_CALL_END', toolCallId })
  }

  #call(
    chunk: Extract<UIMessageChunk, { type: 'tool-input-available' | 'tool-input-error' }>,
  ): void {
    const { toolCallId, toolName, input } = chunk
    const argsSoFar = this.#inputs.get(toolCallId)
    if (argsSoFar === undefined) this.#startCall(toolCallId, toolName)
    const whole = jsonTextOf(input ?? {})
    if (argsSoFar === undefined || argsSoFar === '') this.#args(toolCallId, whole)
    this.#endCall(toolCallId)
    if (argsSoFar === undefined || argsSoFar === '' || isSameJson(argsSoFar, whole)) return
    // The call runs with other arguments than those that were streamed, so the client is sent the new ones.
    this.#messages.setArguments(toolCallId, whole)
    this.#snapshot()
  }

  #result(toolCallId: string, content: string, isError = false): void {
    this.#open.delete(toolCallId)
    this.#interrupts.delete(toolCallId)
    // The client already has the outputs of its own tools.
    if (this.#messages.hasResult(toolCallId)) return
    const messageId = this.#messages.freeId(`${toolCallId}:result`)
    const metadata = isError ? { metadata: { threadprotocol: { status: 'error' } } } : {}
    const result = { messageId, toolCallId, content, role: 'tool', ...metadata } as const
    this.#send({ type: 'TOOL_CALL_RESULT', ...result })
  }

  /** Shows what a person said during the run, unless the client sent it itself. */
  #steering(messageId: string, parts: readonly (TextUIPart | FileUIPart)[]): void {
    if (this.#messages.has(messageId)) return
    const delta = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
    const files = parts.filter((part) => part.type === 'file')
    this.#send({ type: 'TEXT_MESSAGE_START', messageId, role: 'user' })
    if (delta !== '') this.#send({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    this.#send({ type: 'TEXT_MESSAGE_END', messageId })
    for (const file of files) this.#custom('file', { ...file, messageId })
  }

  #metadata(metadata: unknown): void {
    if (metadata !== undefined && metadata !== null) this.#custom('message-metadata', metadata)
  }

  #custom(name: string, value: unknown, id?: string): void {
    const metadata = id === undefined ? {} : { metadata: { threadprotocol: { id } } }
    this.#send({ type: 'CUSTOM', name, value: value ?? null, ...metadata })
  }

  #send(event: AgUiKnownEvent): void {
    this.#messages.apply(event)
    this.#out.push(event)
  }
}

type ToolChunk = Extract<UIMessageChunk, { readonly type: `tool-${string}` }>

type BlockKind = 'text' | 'reasoning'

type Counts = { readonly text: number; readonly reasoning: number; readonly step: number }

/** JSON Schema of the answer to an approval, which a client sends in a `resume` entry. */
const DECISION = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
} as const

/**
 * Converts a chat to the messages of AG-UI, with the ids that a stream of the same thread has, and says what
 * the last message waits for. Sources, files of the model and application data have no place in such messages.
 */
export function toAgUiMessages(chat: readonly UIMessage[]): {
  readonly messages: readonly AgUiMessage[]
  readonly outcome: AgUiOutcome
} {
  const messages: AgUiMessage[] = []
  const places = new Map<string, number>()
  const callsWithResult = new Set<string | undefined>()
  const put = (message: AgUiMessage, place: number): void => {
    messages[place] = message
    places.set(message.id, place)
    if (message.role === 'tool') callsWithResult.add(message.toolCallId)
  }
  let outcome: AgUiOutcome = { type: 'success' }
  for (const message of chat) {
    if (message.role !== 'assistant') {
      const { id, role } = message
      put({ id, role, content: contentOf(message) }, messages.length)
      outcome = { type: 'success' }
      continue
    }
    // The encoder is not given the earlier messages: to copy them for each message would take quadratic time.
    const encoder = new AgUiStreamEncoder({ threadId: '', runId: message.id })
    for (const chunk of encodeUIMessage(message)) if (chunk.type !== 'finish') encoder.push(chunk)
    ;({ outcome } = encoder)
    // What a person said and the results of calls stay as they were sent first; other messages are replaced.
    const additions = encoder.messages.filter(({ id, role, toolCallId }) =>
      role === 'user' ? !places.has(id) : role !== 'tool' || !callsWithResult.has(toolCallId),
    )
    for (const own of additions) put(own, places.get(own.id) ?? messages.length)
  }
  return { messages, outcome }
}

function contentOf({ parts }: UIMessage): NonNullable<AgUiMessage['content']> {
  const content = parts.flatMap((part): AgUiContentPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    const file = part.type === 'file' && fileContent(contentOfUrl(part.url, part.mediaType))
    return file ? [file] : []
  })
  return content.every((part) => part.type === 'text')
    ? content.map((part) => part.text).join('\n')
    : content
}

/** Returns text unchanged, and any other value as JSON text. */
function jsonTextOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value ?? null) ?? 'null')
}

function isSameJson(left: string, right: string): boolean {
  const [one, other] = [tryParseJson(left), tryParseJson(right)]
  if (one === undefined || other === undefined) return left === right
  return canonicalJson(one) === canonicalJson(other)
}
