import type {
  BuiltinToolCallPart,
  RetryPromptPart,
  ToolCallPart,
  ToolReturnPart,
} from '../../document/part.ts'
import { CARRIER, carry, type UICallOutcome } from './carrier.ts'
import type { HiddenFields, Hide } from './to-ui-parts.ts'
import type { OpenToolPart } from './types.ts'

/** A tool call, run by the application or by the provider. */
export type AnyCall = ToolCallPart | BuiltinToolCallPart

/** A part with the outcome of a tool call of the application. */
export type AnyReturn = ToolReturnPart | RetryPromptPart

/**
 * Builds the tool parts of a conversation. A return is matched with its call in any earlier message, and
 * approvals are shown on their call.
 */
export class UIToolBuilder {
  readonly #hide: Hide
  /** Calls without a return, by id. When an id repeats, a return belongs to the nearest earlier call. */
  readonly #open = new Map<string, OpenToolPart[]>()
  readonly #approvals = new Map<string, OpenToolPart>()
  #stepCalls = new Set<string>()
  #approvalIds = new Set<string>()

  constructor(hide: Hide) {
    this.#hide = hide
  }

  beginMessage(): void {
    this.#approvalIds = new Set()
    this.beginStep()
  }

  beginStep(): void {
    this.#stepCalls = new Set()
  }

  /**
   * Creates the part of a call. Returns undefined for a second call with the same id in one step, because the
   * client would overwrite the first.
   */
  addCall(part: AnyCall, at: string, agent_id: string): OpenToolPart | undefined {
    const id = part.tool_call_id
    if (this.#stepCalls.has(id)) return undefined
    this.#stepCalls.add(id)
    const isShown = typeof part.args === 'object' && part.args !== null
    const hidden: HiddenFields = { part, at, from: isShown ? 'args' : undefined }
    const { title, tool_metadata, dynamic } = part as {
      title?: string
      tool_metadata?: OpenToolPart['toolMetadata']
      dynamic?: boolean
    }
    const tool: OpenToolPart = {
      ...(dynamic
        ? { type: 'dynamic-tool', toolName: part.tool_name }
        : { type: `tool-${part.tool_name}` }),
      title,
      toolMetadata: tool_metadata,
      providerExecuted: part.part_kind === 'builtin-tool-call' || undefined,
      toolCallId: id,
      state: 'input-available',
      input: shownInput(part.args),
      callProviderMetadata: carry(this.#hide({ agent_id }, hidden), part),
    }
    const open = this.#open.get(id)
    if (open) open.push(tool)
    else this.#open.set(id, [tool])
    return tool
  }

  /**
   * Sets the outcome of a call. Returns false for a return without a call, or a second return, because the
   * client would fail on it.
   */
  settle(part: AnyReturn, at: string): boolean {
    const { tool_call_id: id, tool_name: name } = part
    const tool = id == null || name == null ? undefined : this.#open.get(id)?.pop()
    if (!tool) return false
    const outcome = outcomeOf(part)
    if (outcome === 'denied' || tool.approval?.approved === false) this.#deny(tool, part, at)
    else this.#finish(tool, part, at, outcome)
    return true
  }

  #finish(
    tool: OpenToolPart,
    part: AnyReturn,
    at: string,
    outcome: UICallOutcome | 'success',
  ): void {
    // A call that ran is marked as approved, because the client's types have no other state for it.
    if (tool.approval) tool.approval.approved = true
    const isText = typeof part.content === 'string'
    if (outcome === 'success') {
      tool.state = 'output-available'
      tool.output = part.content
      const hidden = this.#hide({}, { part, at, from: 'content' })
      if (hidden.at !== undefined || 'provider_metadata' in part)
        tool.resultProviderMetadata = carry(hidden, part)
      return
    }
    tool.state = 'output-error'
    tool.errorText = isText ? (part.content as string) : (JSON.stringify(part.content) ?? '')
    const errors = outcome === 'retry' && !isText ? part.content : undefined
    const from = isText ? 'content' : undefined
    tool.resultProviderMetadata = carry(this.#hide({ outcome, errors }, { part, at, from }), part)
  }

  #deny(tool: OpenToolPart, part: AnyReturn, at: string): void {
    const reason =
      typeof part.content === 'string' && part.content !== '' ? part.content : undefined
    tool.state = 'output-denied'
    tool.approval = tool.approval
      ? { ...tool.approval, approved: false }
      : { id: this.#approvalId(tool.toolCallId), approved: false, reason }
    const hidden = this.#hide({}, { part, at })
    if (hidden.at === undefined) return
    const own = tool.callProviderMetadata?.[CARRIER]
    // A denied UI part has no metadata for a result, so the return is stored in the metadata of the call. The
    // cast is safe because thread data is plain data.
    const result = hidden as never
    tool.callProviderMetadata = { ...tool.callProviderMetadata, [CARRIER]: { ...own, result } }
  }

  /**
   * Shows an approval event on its call. Returns false when there is no such call, or the approval is not
   * open.
   */
  applyApproval(type: string, data: unknown): boolean {
    const event = (typeof data === 'object' && data !== null ? data : {}) as ApprovalEvent
    if (type === 'tool.approval.requested') return this.#request(event)
    return type === 'tool.approval.responded' && this.#respond(event)
  }

  #request(event: ApprovalEvent): boolean {
    const { approval_id, tool_call_id } = event
    const tool = this.#open.get(tool_call_id ?? '')?.at(-1)
    if (!tool || typeof approval_id !== 'string') return false
    tool.state = 'approval-requested'
    if (event.arguments !== undefined) tool.input = event.arguments // what will run, not what the model sent
    const { reason, is_automatic, signature, descriptor, input_schema_input } = event
    const asked: object = {
      descriptor: descriptor ?? undefined,
      ...(input_schema_input !== undefined && { inputSchemaInput: input_schema_input }),
      requestReason: typeof reason === 'string' ? reason : undefined,
      isAutomatic: is_automatic === true || undefined,
      signature: typeof signature === 'string' ? signature : undefined,
    }
    tool.approval = { id: this.#approvalId(approval_id), ...asked }
    this.#approvals.set(approval_id, tool)
    return true
  }

  #respond({ approval_id, approved, reason }: ApprovalEvent): boolean {
    const tool = this.#approvals.get(approval_id ?? '')
    if (!tool?.approval || tool.state !== 'approval-requested' || typeof approved !== 'boolean')
      return false
    tool.state = 'approval-responded'
    tool.approval = { ...tool.approval, approved, ...(typeof reason === 'string' && { reason }) }
    return true
  }

  /**
   * Returns an approval id that is unique within the message, because the client finds an approval by its id
   * alone.
   */
  #approvalId(wanted: string): string {
    let id = wanted
    for (let n = 2; this.#approvalIds.has(id); n++) id = `${wanted}#${n}`
    this.#approvalIds.add(id)
    return id
  }
}

interface ApprovalEvent {
  readonly approval_id?: string
  readonly tool_call_id?: string
  readonly arguments?: unknown
  readonly approved?: boolean
  readonly reason?: unknown
  readonly is_automatic?: unknown
  readonly signature?: unknown
  readonly descriptor?: unknown
  readonly input_schema_input?: unknown
}

/** Returns how a call ended, from the most precise field that states it. */
export function outcomeOf(part: AnyReturn): UICallOutcome | 'success' {
  if (part.part_kind === 'retry-prompt') return 'retry'
  if (part.outcome) return part.outcome
  // A return from the provider has no status and is treated as success.
  const status = part.status as string | undefined
  if (status === undefined || status === 'success') return 'success'
  return status === 'error' ? 'failed' : 'validation_error'
}

/** Returns arguments as a UI shows them: parsed if they are JSON text. */
function shownInput(args: unknown): unknown {
  if (args === null || args === undefined || args === '') return {}
  if (typeof args !== 'string') return args
  try {
    return JSON.parse(args)
  } catch {
    // Models sometimes write arguments that are not JSON. Then the text itself is shown as the input.
    return args
  }
}
