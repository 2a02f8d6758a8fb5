import { parsePartialJson } from '@skein/base'
import { ThreadError } from '../../issue.ts'
import type { OpenToolPart, UIMessageChunk, UIMessagePart } from './types.ts'

type ToolChunk = Extract<UIMessageChunk, { type: `tool-${string}` }>
type CallChunk = Extract<ToolChunk, { toolName: string }>
type ResultChunk = Extract<ToolChunk, { type: 'tool-output-available' | 'tool-output-error' }>

interface InputStream {
  part: OpenToolPart
  text: string
  readonly call: Omit<
    Extract<ToolChunk, { type: 'tool-input-start' }>,
    'type' | 'toolCallId' | 'providerMetadata'
  >
}

/**
 * Assembles the tool parts of one message. A call id is unique within a step; a chunk with the id of an
 * earlier step refers to the latest part with that id.
 */
export class ToolAssembler {
  readonly #parts: UIMessagePart[]
  readonly #latest = new Map<string, OpenToolPart>()
  /**
   * Calls by approval id. The value is undefined when several calls had the same approval id; then the parts
   * are searched for the first of these calls.
   */
  readonly #approvals = new Map<string, OpenToolPart | undefined>()
  /**
   * Argument text by call id. As in the AI SDK's client, deltas that arrive after the complete input are
   * still appended.
   */
  readonly #streams = new Map<string, InputStream>()
  #step = new Map<string, OpenToolPart>()

  readonly rawInputs: Map<UIMessagePart, string> = new Map()
  readonly outcomes: Set<UIMessagePart> = new Set()
  readonly refusals: Set<UIMessagePart> = new Set()

  constructor(parts: UIMessagePart[]) {
    this.#parts = parts
  }

  beginStep(): void {
    this.#step = new Map()
  }

  /**
   * Rebuilds the lookup tables from the parts of the message. Parts from index `start` on belong to the
   * current step.
   */
  rebuild(start: number): void {
    this.#latest.clear()
    this.#approvals.clear()
    this.#streams.clear()
    this.#step = new Map()
    this.#parts.forEach((part, index) => {
      if (!isToolPart(part)) return
      const tool = part as OpenToolPart
      const { toolCallId, approval } = tool
      this.#latest.set(toolCallId, tool)
      if (approval) this.#nameApproval(approval.id, tool)
      if (index < start) return
      this.#step.set(toolCallId, tool)
      if (tool.state === 'input-streaming') this.#streams.set(toolCallId, streamOf(tool))
    })
  }

  push(chunk: ToolChunk): void {
    switch (chunk.type) {
      case 'tool-input-delta':
        return this.#delta(chunk.toolCallId, chunk.inputTextDelta)
      case 'tool-input-start':
        return this.#start(chunk)
      case 'tool-input-available': {
        const part = this.#open(chunk, 'input-available')
        part.input = chunk.input
        if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata
        return
      }
      case 'tool-input-error':
        return this.#refuse(chunk)
      case 'tool-approval-request':
        return this.#request(chunk)
      case 'tool-approval-response':
        return this.#respond(chunk)
      case 'tool-output-denied': {
        const part = this.#find(chunk)
        keepInput(part)
        part.state = 'output-denied'
        this.outcomes.add(part as UIMessagePart)
        return
      }
      case 'tool-output-available':
      case 'tool-output-error':
        return this.#finish(chunk)
      default:
        return chunk satisfies never
    }
  }

  #start(chunk: Extract<ToolChunk, { type: 'tool-input-start' }>): void {
    const part = this.#open(chunk, 'input-streaming')
    if (chunk.inputEncoding) part.inputEncoding = chunk.inputEncoding
    if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata
    const { type: _, toolCallId, providerMetadata: __, ...call } = chunk
    this.#streams.set(toolCallId, { part, text: '', call })
  }

  #delta(toolCallId: string, delta: string): void {
    const stream = this.#streams.get(toolCallId) ?? missing('tool-input-delta', toolCallId)
    stream.text += delta
    if (stream.part.state !== 'input-streaming' || this.#step.get(toolCallId) !== stream.part) {
      const { inputEncoding, providerExecuted: _, ...call } = stream.call
      stream.part = this.#open({ type: 'tool-input-start', toolCallId, ...call }, 'input-streaming')
      if (inputEncoding) stream.part.inputEncoding = inputEncoding
    }
    stream.part.rawInput = stream.text
  }

  /**
   * Sets the part of this call in the current step to a new state and returns it. Creates the part if the
   * step has none.
   */
  #open(chunk: CallChunk, state: OpenToolPart['state']): OpenToolPart {
    const type = chunk.dynamic ? 'dynamic-tool' : `tool-${chunk.toolName}`
    let part = this.#step.get(chunk.toolCallId)
    if (!part || (part.type === 'dynamic-tool') !== (type === 'dynamic-tool')) {
      part = { type, toolCallId: chunk.toolCallId, state }
      this.#parts.push(part as UIMessagePart)
      this.#step.set(chunk.toolCallId, part)
      this.#latest.set(chunk.toolCallId, part)
    }
    this.#keepRawInput(part)
    part.type = type
    if (type === 'dynamic-tool') part.toolName = chunk.toolName
    part.state = state
    describe(part, chunk)
    clearOutcome(part)
    return part
  }

  #refuse(chunk: Extract<ToolChunk, { type: 'tool-input-error' }>): void {
    // An existing part stays a static or dynamic tool part, as in the client, so that it is updated and not
    // duplicated.
    const toolPart = this.#step.get(chunk.toolCallId)
    const dynamic = toolPart ? toolPart.type === 'dynamic-tool' : chunk.dynamic === true
    const { title: _, ...rest } = chunk
    const part = this.#open({ ...rest, dynamic }, 'output-error')
    part.input = chunk.input
    part.errorText = chunk.errorText
    if (chunk.providerMetadata) part.resultProviderMetadata = chunk.providerMetadata
    this.refusals.add(part as UIMessagePart)
    this.outcomes.add(part as UIMessagePart)
  }

  #finish(chunk: ResultChunk): void {
    const part = this.#find(chunk)
    this.#keepRawInput(part)
    const [input, rawInput] = [inputOf(part), part.rawInput]
    clearOutcome(part)
    part.input = input
    describe(part, chunk)
    if (chunk.type === 'tool-output-available') {
      part.state = 'output-available'
      part.output = chunk.output
      if (chunk.preliminary !== undefined) part.preliminary = chunk.preliminary
    } else {
      part.state = 'output-error'
      part.errorText = chunk.errorText
      if (rawInput !== undefined && part.type !== 'dynamic-tool') part.rawInput = rawInput
    }
    if (chunk.providerMetadata) part.resultProviderMetadata = chunk.providerMetadata
    if (!(chunk.type === 'tool-output-available' && chunk.preliminary))
      this.outcomes.add(part as UIMessagePart)
  }

  #request(chunk: Extract<ToolChunk, { type: 'tool-approval-request' }>): void {
    const part = this.#find(chunk)
    keepInput(part)
    part.state = 'approval-requested'
    part.approval = {
      id: chunk.approvalId,
      descriptor: chunk.approvalDescriptor ?? undefined,
      ...('inputSchemaInput' in chunk && { inputSchemaInput: chunk.inputSchemaInput }),
      requestReason: chunk.reason,
      isAutomatic: chunk.isAutomatic || undefined,
      signature: chunk.signature,
    }
    this.#nameApproval(chunk.approvalId, part)
  }

  #respond(chunk: Extract<ToolChunk, { type: 'tool-approval-response' }>): void {
    const part = this.#findApproval(chunk.approvalId) ?? missing(chunk.type, chunk.approvalId)
    keepInput(part)
    part.state = 'approval-responded'
    part.approval = {
      ...part.approval,
      id: chunk.approvalId,
      approved: chunk.approved,
      reason: chunk.reason ?? part.approval?.reason,
    }
    if (chunk.providerExecuted !== undefined) part.providerExecuted = chunk.providerExecuted
    if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata
  }

  #nameApproval(id: string, part: OpenToolPart): void {
    const isShared = this.#approvals.has(id) && this.#approvals.get(id) !== part
    this.#approvals.set(id, isShared ? undefined : part)
  }

  /**
   * Returns the first part with that approval id. The part in `#approvals` may have another approval id by
   * now, if the call was asked about a second time.
   */
  #findApproval(id: string): OpenToolPart | undefined {
    const part = this.#approvals.get(id)
    if (part?.approval?.id === id || !this.#approvals.has(id)) return part
    return (this.#parts as OpenToolPart[]).find(
      (candidate) => isToolPart(candidate) && candidate.approval?.id === id,
    )
  }

  #find({ type, toolCallId }: { type: string; toolCallId: string }): OpenToolPart {
    return this.#step.get(toolCallId) ?? this.#latest.get(toolCallId) ?? missing(type, toolCallId)
  }

  /**
   * Stores the argument text of a part. The client drops it once the input is parsed, but a thread keeps it
   * byte for byte.
   */
  #keepRawInput(part: OpenToolPart): void {
    if (typeof part.rawInput === 'string' && part.state === 'input-streaming') {
      this.rawInputs.set(part as UIMessagePart, part.rawInput)
    }
  }
}

/** Stores the input that has arrived so far, before the part leaves the streaming state. */
function keepInput(part: OpenToolPart): void {
  if (part.state === 'input-streaming') part.input = inputOf(part)
}

/** Returns the input of a part, as far as it has arrived. */
export function inputOf(part: OpenToolPart): unknown {
  if (part.state !== 'input-streaming' || typeof part.rawInput !== 'string') return part.input
  return part.inputEncoding === 'text' ? part.rawInput : parsePartialJson(part.rawInput)
}

/**
 * Creates the input stream of a part that was stored while its arguments were arriving, so that deltas can be
 * appended to the arguments.
 */
function streamOf(part: OpenToolPart): InputStream {
  const dynamic = part.type === 'dynamic-tool'
  const { inputEncoding, title, toolMetadata } = part
  const toolName = dynamic ? (part.toolName ?? '') : part.type.slice('tool-'.length)
  const call = { toolName, dynamic, inputEncoding, title, toolMetadata }
  return { part, text: typeof part.rawInput === 'string' ? part.rawInput : '', call }
}

/** True for the part of a tool call, whatever the tool's name. */
export function isToolPart<Part extends { readonly type: string }>(
  part: Part,
): part is Part & { type: `tool-${string}` | 'dynamic-tool' } {
  return part.type.startsWith('tool-') || part.type === 'dynamic-tool'
}

/** Sets the fields that a chunk contains. A field that the chunk does not contain keeps its earlier value. */
function describe(
  part: OpenToolPart,
  chunk: Pick<OpenToolPart, 'providerExecuted' | 'title' | 'toolMetadata'>,
): void {
  const { providerExecuted, title, toolMetadata } = chunk
  if (providerExecuted !== undefined) part.providerExecuted = providerExecuted
  if (title !== undefined) part.title = title
  if (toolMetadata !== undefined) part.toolMetadata = toolMetadata
}

function clearOutcome(part: OpenToolPart): void {
  delete part.input
  delete part.output
  delete part.errorText
  delete part.rawInput
  delete part.inputEncoding
  delete part.preliminary
}

/** Throws, as the client does, because a delta without its start chunk means that the stream lost data. */
export function missing(chunkType: string, id: string): never {
  throw new ThreadError(
    `The stream has a ${chunkType} chunk for "${id}", which it never started.`,
    {
      code: 'UI_CHUNK_ORPHAN',
      hint: 'Send the start chunk first; a continuation needs the message that it continues.',
    },
  )
}
