import type { MessagePart, SystemMessage, ThreadMessage, UserPromptPart } from '../../types.ts'
import type { ToolCallPart, ToolReturnPart, RetryPromptPart, FilePart } from '../../types.ts'
import { carry, without, type CallOutcome, type PartCarrier, type ShownField } from './carrier.ts'
import { dataUrl, mediaTypeOf } from './media.ts'
import { eventPart } from './to-ui-events.ts'
import { userContent } from './to-ui-user.ts'
import type { Citation, OpenToolPart, UIMessagePart } from './types.ts'

/** How much of a thread travels with its UI messages. */
export type Carry = 'public' | 'all'

type AnyReturn = ToolReturnPart | RetryPromptPart

/** Turns parts of a thread into UI parts; a return finds its call wherever that stands. */
export class UIPartBuilder {
  readonly carry: Carry
  #parts: UIMessagePart[] = []
  /** Calls without a return, by id; ids may repeat, the nearest is meant. */
  readonly #open = new Map<string, OpenToolPart[]>()
  readonly #approvals = new Map<string, OpenToolPart>()
  #stepCalls = new Set<string>()
  #approvalIds = new Set<string>()
  #data = new Map<string, UIMessagePart>()

  constructor(carryMode: Carry) {
    this.carry = carryMode
  }

  /** Starts a message; what is added goes to the returned list. */
  begin(): UIMessagePart[] {
    this.#parts = []
    this.#stepCalls = new Set()
    this.#approvalIds = new Set()
    this.#data = new Map()
    return this.#parts
  }

  /** Shows a message of an agent turn; returns what must be carried of it. */
  addMessage(message: ThreadMessage | SystemMessage, at: string): Record<string, unknown> {
    if (message.message_type === 'system') return this.#addEvent(message, at)
    if (!Array.isArray(message.parts)) return { ...(message as object) }
    if (message.message_type === 'response') {
      this.#parts.push({ type: 'step-start' })
      this.#stepCalls = new Set()
    }
    message.parts.forEach((part, index) => this.#addPart(part, `${at}.${index}`, message.agent_id))
    return without(message, 'parts') as Record<string, unknown>
  }

  addUserPart(part: MessagePart, at: string): void {
    if (part.part_kind === 'user-prompt') this.#addPrompt(part, at)
    else if (isReturn(part)) this.#settle(part, at)
    else this.#addOpaque(part, at)
  }

  #addPart(part: MessagePart, at: string, agentId: string): void {
    const agent_id = agentId
    switch (part.part_kind) {
      case 'text': {
        const providerMetadata = this.#carry({ agent_id }, { part, at, from: 'content' })
        const { citations } = part as { citations?: Citation[] }
        this.#parts.push({
          type: 'text',
          text: part.content,
          state: 'done',
          ...(citations && { citations }),
          providerMetadata,
        })
        return
      }
      case 'thinking': {
        const whole = typeof part.content !== 'string'
        const providerMetadata = this.#carry(
          { agent_id },
          { part, at, ...(!whole && { from: 'content' }) },
        )
        this.#parts.push({
          type: 'reasoning',
          id: `r-${at}`,
          text: part.content ?? '',
          state: 'done',
          providerMetadata,
        })
        return
      }
      case 'tool-call':
      case 'builtin-tool-call':
        return this.#addCall(part, at, agentId)
      case 'tool-return':
      case 'builtin-tool-return':
      case 'retry-prompt':
        return this.#settle(part as AnyReturn, at, agentId)
      case 'file':
        return this.#addFile(part, at, agentId)
      case 'user-prompt':
        return this.#addSteering(part, at)
      case 'speech': {
        if (typeof part.transcript !== 'string') return this.#addOpaque(part, at, agentId)
        const providerMetadata = this.#carry({ agent_id }, { part, at, from: 'transcript' })
        this.#parts.push({ type: 'text', text: part.transcript, state: 'done', providerMetadata })
        return
      }
      default:
        return this.#addOpaque(part, at, agentId)
    }
  }

  #addCall(
    part: ToolCallPart | ({ part_kind: 'builtin-tool-call' } & Omit<ToolCallPart, 'part_kind'>),
    at: string,
    agent_id: string,
  ): void {
    // The client knows one call per id and step: a second one would overwrite the first.
    if (this.#stepCalls.has(part.tool_call_id))
      return this.#addOpaque(part as MessagePart, at, agent_id)
    this.#stepCalls.add(part.tool_call_id)
    const isShown = typeof part.args === 'object' && part.args !== null
    const { title, tool_metadata, dynamic } = part as {
      title?: string
      tool_metadata?: never
      dynamic?: true
    }
    const tool: OpenToolPart = {
      ...(dynamic
        ? { type: 'dynamic-tool', toolName: part.tool_name }
        : { type: `tool-${part.tool_name}` }),
      toolCallId: part.tool_call_id,
      state: 'input-available',
      input: inputOf(part.args),
      ...(title !== undefined && { title }),
      ...(tool_metadata !== undefined && { toolMetadata: tool_metadata }),
      ...(part.part_kind === 'builtin-tool-call' && { providerExecuted: true }),
      callProviderMetadata: this.#carry(
        { agent_id },
        { part, at, ...(isShown && { from: 'args' }) },
      ),
    }
    const open = this.#open.get(part.tool_call_id)
    if (open) open.push(tool)
    else this.#open.set(part.tool_call_id, [tool])
    this.#parts.push(tool as UIMessagePart)
  }

  /** Gives a call its outcome. A return without a call, or a second one, is shown as data: the client would fail. */
  #settle(part: AnyReturn, at: string, agentId?: string): void {
    const id = part.tool_call_id
    const tool = id == null || part.tool_name == null ? undefined : this.#open.get(id)?.pop()
    if (!tool) return this.#addOpaque(part as MessagePart, at, agentId)
    const outcome = outcomeOf(part)
    if (outcome === 'denied' || tool.approval?.approved === false) return this.#deny(tool, part, at)
    if (tool.approval) tool.approval.approved = true
    const isText = typeof part.content === 'string'
    if (outcome === 'success') {
      tool.state = 'output-available'
      tool.output = part.content
      if (this.carry === 'all')
        tool.resultProviderMetadata = this.#carry({}, { part, at, from: 'content' })
      return
    }
    tool.state = 'output-error'
    tool.errorText = textOf(part.content)
    const errors = outcome === 'retry' && !isText && { errors: part.content }
    tool.resultProviderMetadata = this.#carry(
      { outcome, ...errors },
      { part, at, ...(isText && { from: 'content' }) },
    )
  }

  #deny(tool: OpenToolPart, part: AnyReturn, at: string): void {
    const reason =
      typeof part.content === 'string' && part.content !== '' ? { reason: part.content } : {}
    tool.state = 'output-denied'
    tool.approval = tool.approval
      ? { ...tool.approval, approved: false }
      : { id: this.#approvalId(tool.toolCallId), approved: false, ...reason }
    if (this.carry !== 'all') return
    const own = tool.callProviderMetadata?.['threadprotocol']
    // The carrier is ours and plain data.
    const result = { at, part } as never
    tool.callProviderMetadata = { ...tool.callProviderMetadata, threadprotocol: { ...own, result } }
  }

  /** Within a message the client finds an approval by its id alone, so ids must not repeat there. */
  #approvalId(wanted: string): string {
    let id = wanted
    for (let n = 2; this.#approvalIds.has(id); n++) id = `${wanted}#${n}`
    this.#approvalIds.add(id)
    return id
  }

  #addFile(part: FilePart, at: string, agent_id: string): void {
    const { content } = part
    const isBinary = content.kind === 'binary'
    const url = isBinary ? dataUrl(content.media_type, content.data) : content.url
    // The bytes travel in the URL. In the carrier they would double the size, unless their text is unusual.
    const isStandard = isBinary && !/[-_]/.test(content.data)
    const carriedPart =
      isBinary && isStandard ? { ...part, content: without(content, 'data') } : part
    const from: { from?: ShownField } = isBinary && isStandard ? { from: 'data' } : {}
    const type = (part as { reasoning?: boolean }).reasoning ? 'reasoning-file' : 'file'
    const providerMetadata = this.#carry({ agent_id }, { part, kept: carriedPart, at, ...from })
    this.#parts.push({ type, mediaType: mediaTypeOf(content), url, providerMetadata })
  }

  #addPrompt(part: UserPromptPart, at: string): void {
    this.#parts.push(...userContent(part, at, this.carry))
  }

  /** A prompt in mid-run, from a person who steers or an agent that asks another. */
  #addSteering(part: UserPromptPart, at: string): void {
    const shown = userContent(part, at, this.carry)
    const content = shown.filter((item) => item.type === 'text' || item.type === 'file')
    if (content.length > 0)
      this.#parts.push({ type: 'steering-message', id: `s-${at}`, parts: content })
    this.#parts.push(...shown.filter((item) => item.type !== 'text' && item.type !== 'file'))
  }

  #addEvent(message: SystemMessage, at: string): Record<string, unknown> {
    const data = message.event_data as { tool_call_id?: string; approval_id?: string } | null
    if (this.#applyApproval(message.event_type, data)) return { ...message }
    const part = eventPart(message, this.carry === 'all' ? `tp-${at}` : undefined)
    if (!part) return { ...message }
    const id = 'data' in part ? part.id : undefined
    const known = id === undefined ? undefined : this.#data.get(`${part.type}\0${id}`)
    // The same data id replaces, as in the client.
    if (known) Object.assign(known, part)
    else this.#parts.push(part)
    if (id !== undefined) this.#data.set(`${part.type}\0${id}`, known ?? part)
    if (!('data' in part)) return { ...message }
    return { ...without(message, 'event_data'), shown: id }
  }

  /** Approvals are shown on the call they concern. */
  #applyApproval(
    type: string,
    data: { tool_call_id?: string; approval_id?: string } | null,
  ): boolean {
    if (type === 'tool.approval.requested' && data) {
      const tool = this.#open.get(data.tool_call_id ?? '')?.at(-1)
      if (!tool || typeof data.approval_id !== 'string') return false
      tool.state = 'approval-requested'
      tool.approval = { id: this.#approvalId(data.approval_id), ...requestFields(data) }
      this.#approvals.set(data.approval_id, tool)
      return true
    }
    if (type !== 'tool.approval.responded' || !data) return false
    const tool = this.#approvals.get(data.approval_id ?? '')
    const { approved, reason } = data as { approved?: boolean; reason?: string }
    if (!tool?.approval || tool.state !== 'approval-requested' || typeof approved !== 'boolean')
      return false
    tool.state = 'approval-responded'
    tool.approval = { ...tool.approval, approved, ...(typeof reason === 'string' && { reason }) }
    return true
  }

  /** What the UI has no part for. Without `all`, only outcomes are shown this way. */
  #addOpaque(part: MessagePart, at: string, agent_id?: string): void {
    const who = agent_id === undefined ? {} : { agent_id }
    if (this.carry === 'all') {
      this.#parts.push({ type: 'data-tp-part', id: `tp-${at}`, data: { ...who, part } })
    } else if (isReturn(part)) {
      const { part_kind, tool_name, tool_call_id, content } = part
      const outcome = outcomeOf(part)
      const shown = { part_kind, tool_name, tool_call_id, outcome, content }
      this.#parts.push({ type: 'data-tp-part', data: { ...who, part: shown } })
    }
  }

  #carry(
    shown: PartCarrier,
    hidden: PartCarrier & { part: object; kept?: unknown },
  ): ReturnType<typeof carry> {
    const { part, kept, at, from } = hidden
    if (this.carry === 'public') return carry(shown, part)
    const rest = kept ?? (from === undefined ? part : without(part, from))
    return carry(
      { ...shown, ...(at !== undefined && { at }), part: rest, ...(from && { from }) },
      part,
    )
  }
}

function isReturn(part: MessagePart): part is AnyReturn {
  return part.part_kind === 'tool-return' || part.part_kind === 'retry-prompt'
}

function outcomeOf(part: AnyReturn): CallOutcome | 'success' {
  if (part.part_kind === 'retry-prompt') return 'retry'
  if (part.outcome) return part.outcome
  // A provider's own return has no status and counts as success.
  const status = part.status as string | undefined
  return status === undefined || status === 'success'
    ? 'success'
    : status === 'error'
      ? 'failed'
      : 'validation_error'
}

/** Arguments as a UI shows them: parsed where they are JSON text. */
function inputOf(args: unknown): unknown {
  if (args === null || args === undefined || args === '') return {}
  if (typeof args !== 'string') return args
  try {
    return JSON.parse(args)
  } catch {
    // Models do write arguments that are no JSON; the text itself is then the input.
    return args
  }
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? '')
}

function requestFields(data: object): object {
  const { reason, is_automatic, signature, descriptor, input_schema_input } = data as Record<
    string,
    unknown
  >
  return {
    ...(descriptor != null && { descriptor }),
    ...(input_schema_input !== undefined && { inputSchemaInput: input_schema_input }),
    ...(typeof reason === 'string' && { requestReason: reason }),
    ...(is_automatic === true && { isAutomatic: true }),
    ...(typeof signature === 'string' && { signature }),
  }
}
