import { joinPointer, type Loss } from '../../issue.ts'
import type { AgentTurn, SystemMessage, ThreadMessage } from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { systemMessage } from '../../events/system-message.ts'
import { isToolPart } from './assemble-tools.ts'
import { carried, messageCarrier, omitKeys } from './carrier.ts'
import {
  approvalEvents,
  callPart,
  foreignMetadata,
  outcomePart,
  providerFields,
  userPrompt,
} from './from-ui-parts.ts'
import { endEvents, finishFields, interruption, type StreamNotes } from './stream-ending.ts'
import { contentOfUrl } from '../bridge/media.ts'
import type { DataUIPart, OpenToolPart, UIMessage, UIMessagePart } from './types.ts'

/** The arguments of `agentTurns` besides the message. */
export interface AssistantContext {
  readonly at: string
  readonly pointer: string
  readonly lost: Loss[]
  /** The agent to use for parts that name none. */
  readonly agent: string
  readonly notes: StreamNotes | undefined
  /** Whether data parts of this package (`data-tp-…`) are read; otherwise they are reported as lost. */
  readonly isTrusted: boolean
  /** The message as it was given; `notes` refers to its parts. */
  readonly given: UIMessage
  /** The first part to read. Default 0. */
  readonly from?: number
}

/**
 * Converts an assistant message step by step. Each step becomes one response and one request with the
 * outcomes of its calls.
 */
export function agentTurns(message: UIMessage, context: AssistantContext): AgentTurn[] {
  const reader = new TurnReader(message, context)
  const { from = 0 } = context
  message.parts.forEach((part, index) => {
    if (index >= from) reader.read(part, index)
  })
  return reader.end()
}

type Entry = ThreadMessage | SystemMessage

class TurnReader {
  readonly #context: AssistantContext
  readonly #turns: (Omit<AgentTurn, 'messages'> & { readonly messages: Entry[] })[] = []
  #agentId: string
  #turnId: string
  #messages: Entry[] = []
  #step = emptyStep()
  #lastResponse: ThreadMessage | undefined

  constructor(message: UIMessage, context: AssistantContext) {
    this.#context = context
    this.#agentId = messageCarrier(message).turns?.[0]?.agent_id ?? context.agent
    this.#turnId = message.id
  }

  read(part: UIMessagePart, index: number): void {
    switch (part.type) {
      case 'step-start':
        this.#flush()
        this.#step.hasResponse = true
        return
      case 'text': {
        const { citations, providerMetadata } = part
        const extra = providerFields(providerMetadata, 'id')
        return this.#add(
          { part_kind: 'text', content: part.text, citations, ...extra },
          providerMetadata,
        )
      }
      case 'reasoning': {
        const fields = providerFields(part.providerMetadata, 'thinking_id')
        return this.#add(
          { part_kind: 'thinking', content: part.text, ...fields },
          part.providerMetadata,
        )
      }
      case 'file':
      case 'reasoning-file': {
        const content = contentOfUrl(part.url, part.mediaType)
        const extra = {
          reasoning: part.type === 'reasoning-file' || undefined,
          ...providerFields(part.providerMetadata, 'id'),
        }
        return this.#add({ part_kind: 'file', content, ...extra }, part.providerMetadata)
      }
      case 'steering-message': {
        const { pointer, lost, at } = this.#context
        const parts = userPrompt(part.parts, joinPointer(pointer, 'parts', index), lost)
        this.#step.before.push({
          message_type: 'request',
          timestamp: at,
          agent_id: this.#agentId,
          parts,
        })
        return
      }
      case 'source-url': {
        const { sourceId: source_id, url, title } = part
        const data = {
          source_id,
          url,
          title,
          ...foreignMetadata(part.providerMetadata),
        }
        return this.#event('source.url', data)
      }
      case 'source-document': {
        const { sourceId: source_id, mediaType: media_type, title, filename } = part
        const name = filename === undefined ? {} : { filename }
        const data = {
          source_id,
          media_type,
          title,
          ...name,
          ...foreignMetadata(part.providerMetadata),
        }
        return this.#event('source.document', data)
      }
      case 'custom':
        return this.#event('content.custom', {
          kind: part.kind,
          ...foreignMetadata(part.providerMetadata),
        })
      default:
        if (isToolPart(part)) return this.#readTool(part as OpenToolPart, index)
        return this.#readData(part satisfies DataUIPart, index)
    }
  }

  #readTool(tool: OpenToolPart, index: number): void {
    const { notes, lost, pointer, at, given } = this.#context
    const place = joinPointer(pointer, 'parts', index)
    if (tool.state === 'input-streaming') {
      lost.push({ pointer: place, reason: 'the arguments of this call never became complete' })
      return
    }
    const part = given.parts[index]!
    this.#add(callPart(tool, notes?.rawInputs.get(part)), tool.callProviderMetadata)
    this.#step.approvals.push(...approvalEvents(tool, at))
    if (tool.preliminary)
      lost.push({ pointer: place, reason: 'a preliminary output is shown, never history' })
    const outcome = outcomePart(tool, notes?.refusals.has(part) ?? false)
    if (!outcome) return
    if (tool.providerExecuted) this.#step.parts.push(outcome)
    else this.#step.returns.set(part, outcome)
  }

  #readData({ type, id, data }: DataUIPart, index: number): void {
    const { isTrusted, lost, pointer } = this.#context
    if (!isTrusted && type.startsWith('data-tp-')) {
      const reason = "thread data of a page is not read without carrier: 'trust'"
      lost.push({ pointer: joinPointer(pointer, 'parts', index), reason })
      return
    }
    if (type === 'data-tp-turn') return this.#nextTurn(data)
    const part = type === 'data-tp-part' ? (data as { part?: MessagePart } | null)?.part : undefined
    if (part) this.#step.returns.set(part, withStatus(part))
    else this.#event(type.slice('data-'.length), data, id)
  }

  #nextTurn(data: unknown): void {
    const { turn_id, agent_id } = (data ?? {}) as { turn_id?: string; agent_id?: string }
    const { hasResponse, before, approvals, returns, after } = this.#step
    const isStepEmpty =
      !hasResponse && before.length + approvals.length + returns.size + after.length === 0
    if (this.#messages.length > 0 || !isStepEmpty) this.#closeTurn()
    if (typeof turn_id === 'string') this.#turnId = turn_id
    if (typeof agent_id === 'string') this.#agentId = agent_id
  }

  #add(part: object, metadata: unknown): void {
    const agent = carried(metadata).agent_id
    if (typeof agent === 'string') this.#step.agentId ??= agent
    this.#step.hasResponse = true
    this.#step.parts.push(part as MessagePart)
  }

  #event(event_type: string, event_data: unknown, id?: string): void {
    const event = systemMessage(event_type, event_data, this.#context.at)
    const list = this.#step.parts.length === 0 ? this.#step.before : this.#step.after
    list.push(id === undefined ? event : ({ ...event, event_id: id } as SystemMessage))
  }

  #flush(): void {
    const { before, parts, approvals, returns, after, hasResponse, agentId } = this.#step
    const agent_id = agentId ?? this.#agentId
    const timestamp = this.#context.at
    this.#messages.push(...before)
    if (hasResponse) {
      this.#lastResponse = { message_type: 'response', timestamp, agent_id, parts }
      this.#messages.push(this.#lastResponse)
    }
    this.#messages.push(...approvals)
    if (returns.size > 0) {
      const { notes } = this.#context
      let results = [...returns.values()]
      if (notes && returns.size > 1) {
        // Outcomes come in the order in which they were streamed; outcomes that were not streamed follow in
        // the order of their parts.
        const inStreamOrder = [...notes.outcomes].filter((part) => returns.has(part))
        const order = new Set<object>([...inStreamOrder, ...returns.keys()])
        results = [...order].map((part) => returns.get(part)!)
      }
      this.#messages.push({ message_type: 'request', timestamp, agent_id, parts: results })
    }
    this.#messages.push(...after)
    this.#step = emptyStep()
  }

  #closeTurn(): void {
    this.#flush()
    const { at } = this.#context
    this.#turns.push({
      turn_type: 'agent',
      turn_id: this.#turnId,
      agent_id: this.#agentId,
      started_at: at,
      completed_at: at,
      messages: this.#messages,
    })
    this.#messages = []
  }

  end(): AgentTurn[] {
    this.#closeTurn()
    const { notes, at } = this.#context
    const last = this.#turns.at(-1)
    if (!notes || !last) return this.#turns
    if (this.#lastResponse) Object.assign(this.#lastResponse, finishFields(notes.finishReason))
    last.messages.push(...endEvents(notes, at))
    Object.assign(last, interruption(notes, at))
    return this.#turns
  }
}

interface Step {
  hasResponse: boolean
  agentId: string | undefined
  readonly before: Entry[]
  readonly parts: MessagePart[]
  readonly approvals: SystemMessage[]
  readonly returns: Map<object, MessagePart>
  readonly after: Entry[]
}

function emptyStep(): Step {
  return {
    hasResponse: false,
    agentId: undefined,
    before: [],
    parts: [],
    approvals: [],
    returns: new Map(),
    after: [],
  }
}

/**
 * Adds the `status` that a thread requires to a tool return that was sent as a data part and has only an
 * `outcome`.
 */
function withStatus(part: MessagePart): MessagePart {
  const fields = part as { part_kind: string; status?: string; outcome?: string }
  if (fields.part_kind !== 'tool-return' || fields.status) return part
  if (fields.outcome === 'validation_error') {
    return { ...omitKeys(fields, 'outcome'), status: 'validation_error' } as MessagePart
  }
  return { ...fields, status: fields.outcome === 'success' ? 'success' : 'error' } as MessagePart
}
