import type { LoggedOutcome } from '../../events/event.ts'
import type { SystemMessage } from '../../document/thread.ts'
import { dataUrl, contentMediaType } from '../bridge/media.ts'
import { mediaContent } from '../../events/message-parts.ts'
import { type AssistantMessageJSON, canonicalJson, type JsonValue } from '@skein/base'
import { CARRIER } from './carrier.ts'
import { reasoningId } from './to-ui-parts.ts'
import type { UIProviderMetadata, UIJsonObject, UIMessageChunk } from './types.ts'

interface Block {
  readonly type: 'text' | 'reasoning' | 'tool'
  /** The id of the block in events. */
  readonly id: string
  /** The id of the block in chunks. */
  readonly chunkId: string
  text: string
  isOpen: boolean
}

/**
 * Creates the chunks of one model call at a time: its streamed text, its complete message, and the outcomes
 * of its calls.
 */
export class EventStepEncoder {
  #turnId = ''
  #metadata: UIProviderMetadata = {}
  #isOpen = false
  #blocks: Block[] = []
  #texts = 0
  #reasonings = 0
  /** Calls of this response that have no outcome yet; the value is `true` once a person was asked. */
  readonly #calls = new Map<string, boolean>()
  /** What the client shows of each call. */
  readonly #shown = new Map<string, { readonly toolName: string; readonly input: unknown }>()
  readonly #settled = new Set<string>()
  /** The approvals that this response asked for, with their calls. */
  readonly #asked = new Map<string, string>()
  /** Calls whose approval was answered. */
  readonly #answered = new Set<string>()

  beginTurn(turnId: string, metadata: UIProviderMetadata): void {
    this.#turnId = turnId
    this.#metadata = metadata
    this.#texts = 0
    this.#reasonings = 0
  }

  start(): UIMessageChunk[] {
    const chunks = this.finish()
    this.#isOpen = true
    this.#blocks = []
    return [...chunks, { type: 'start-step' }]
  }

  /** Returns the chunk that makes the client discard the content of this step; none when no step is open. */
  reset(): UIMessageChunk[] {
    if (!this.#isOpen) return []
    this.#reasonings -= this.#blocks.filter((block) => block.type === 'reasoning').length
    this.#blocks = []
    return [{ type: 'reset-step' }]
  }

  finish(): UIMessageChunk[] {
    if (!this.#isOpen) return []
    this.#isOpen = false
    return [...this.#closeBlocks(), { type: 'finish-step' }]
  }

  delta(type: 'text' | 'reasoning', id: string, text: string): UIMessageChunk[] {
    const chunks = this.#isOpen ? [] : this.start()
    let block = this.#blocks.findLast((candidate) => candidate.id === id && candidate.type === type)
    if (!block) {
      block = this.#open(type, id)
      chunks.push({ type: `${type}-start`, id: block.chunkId, providerMetadata: this.#metadata })
    }
    block.text += text
    if (text !== '') chunks.push({ type: `${type}-delta`, id: block.chunkId, delta: text })
    return chunks
  }

  callDelta(toolCallId: string, toolName: string, inputTextDelta: string): UIMessageChunk[] {
    const chunks = this.#isOpen ? [] : this.start()
    const isKnown = this.#blocks.some((block) => block.type === 'tool' && block.id === toolCallId)
    if (!isKnown) {
      this.#open('tool', toolCallId)
      const providerMetadata = this.#metadata
      chunks.push({ type: 'tool-input-start', toolCallId, toolName, providerMetadata })
    }
    if (inputTextDelta !== '') chunks.push({ type: 'tool-input-delta', toolCallId, inputTextDelta })
    return chunks
  }

  /**
   * Returns the chunks of the complete message. If the streamed content differs from the message, the step is
   * reset and the whole message is sent.
   */
  complete(message: AssistantMessageJSON): UIMessageChunk[] {
    const chunks = this.#isOpen ? [] : this.start()
    const blocks = message.content.filter(
      (block) => block.type === 'text' || block.type === 'reasoning',
    )
    const calls = message.toolCalls ?? []
    if (
      !this.#agrees(
        blocks,
        calls.map((call) => call.toolCallId),
        message,
      )
    ) {
      if (this.#blocks.length > 0) chunks.push(...this.reset())
      chunks.push(...this.#showAll(message))
    }
    chunks.push(...this.#closeBlocks())
    const seen = new Set<string>()
    for (const { toolCallId, toolName, arguments: input } of calls) {
      if (seen.has(toolCallId)) continue
      seen.add(toolCallId)
      this.#calls.set(toolCallId, false)
      this.#shown.set(toolCallId, { toolName, input: input ?? {} })
      this.#settled.delete(toolCallId)
      const providerMetadata = this.#metadata
      chunks.push({
        type: 'tool-input-available',
        toolCallId,
        toolName,
        input: input ?? {},
        providerMetadata,
      })
    }
    return chunks
  }

  /** Returns the chunks of calls with which a person has replaced open calls of the message. */
  changed({ toolCalls = [] }: AssistantMessageJSON): UIMessageChunk[] {
    return toolCalls.flatMap(({ toolCallId, toolName, arguments: input, metadata }) => {
      const from = String(metadata?.['skein']?.['changedFrom'])
      if (!this.#calls.has(from) || this.#calls.has(toolCallId)) return []
      this.#calls.set(toolCallId, false)
      this.#shown.set(toolCallId, { toolName, input: input ?? {} })
      const providerMetadata = this.#metadata
      return [
        { type: 'tool-input-available', toolCallId, toolName, input, providerMetadata } as const,
      ]
    })
  }

  #agrees(
    wanted: readonly { type: string; text: string }[],
    calls: readonly string[],
    message: AssistantMessageJSON,
  ): boolean {
    const words = this.#blocks.filter((block) => block.type !== 'tool')
    const tools = this.#blocks.filter((block) => block.type === 'tool')
    const isInOrder = this.#blocks.slice(0, words.length).every((block) => block.type !== 'tool')
    const hasOnlyWords = wanted.length === message.content.length
    return (
      hasOnlyWords &&
      isInOrder &&
      words.length === wanted.length &&
      words.every(
        (block, index) => block.type === wanted[index]?.type && block.text === wanted[index].text,
      ) &&
      tools.every((block, index) => block.id === calls[index])
    )
  }

  #showAll(message: AssistantMessageJSON): UIMessageChunk[] {
    return message.content.flatMap((block, index): UIMessageChunk[] => {
      switch (block.type) {
        case 'text':
        case 'reasoning': {
          const chunks = this.delta(block.type, `whole-${index}`, block.text)
          return [...chunks, ...this.#closeBlocks()]
        }
        case 'image':
        case 'document':
        case 'audio':
        case 'video':
        case 'binary': {
          const content = mediaContent(block)
          const url =
            content.kind === 'binary' ? dataUrl(content.media_type, content.data) : content.url
          const mediaType = contentMediaType(content)
          return [{ type: 'file', url, mediaType, providerMetadata: this.#metadata }]
        }
        case 'native':
          return [] // a client cannot show a vendor's own block
        default:
          block satisfies never
          return []
      }
    })
  }

  /** Returns the chunks for the outcome of a call; none when the outcome was sent before. */
  settle(toolCallId: string, outcome: LoggedOutcome, result: unknown): UIMessageChunk[] {
    if (this.#settled.has(toolCallId)) return []
    this.#settled.add(toolCallId)
    const isAsked = this.#calls.get(toolCallId)
    this.#calls.delete(toolCallId)
    if (outcome === 'success')
      return [{ type: 'tool-output-available', toolCallId, output: result ?? null }]
    if (outcome === 'denied') {
      const denial: UIMessageChunk = { type: 'tool-output-denied', toolCallId }
      if (isAsked !== false) return [denial]
      // The call was denied without asking a person. The client's types still require an approval, so its
      // request and response are sent too.
      const reason = typeof result === 'string' && result !== '' ? { reason: result } : {}
      const approvalId = toolCallId
      return [
        { type: 'tool-approval-request', approvalId, toolCallId },
        { type: 'tool-approval-response', approvalId, approved: false, ...reason },
        denial,
      ]
    }
    const isText = typeof result === 'string'
    const carrier = {
      outcome: outcome === 'unknown' ? 'interrupted' : outcome,
      errors: outcome === 'retry' && Array.isArray(result) ? result : undefined,
    } as UIJsonObject
    const errorText = isText ? result : (JSON.stringify(result ?? null) ?? '')
    return [
      {
        type: 'tool-output-error',
        toolCallId,
        errorText,
        providerMetadata: { [CARRIER]: carrier },
      },
    ]
  }

  /**
   * Closes the calls that a person has answered and that have no outcome when the response ends. Otherwise
   * the client's own predicate (`lastAssistantMessageIsCompleteWithApprovalResponses`) stays true and the
   * client sends the same answer for ever. While another call waits for a person or the page, the predicate
   * is false and nothing is closed.
   */
  closeAnswered(byClient: readonly string[]): UIMessageChunk[] {
    const answerIds = new Set([...byClient, ...this.#answered])
    if ([...this.#calls.keys()].some((id) => !answerIds.has(id))) return []
    return [...answerIds].flatMap((id) =>
      this.settle(id, 'interrupted', 'The call was answered, but has no result yet.'),
    )
  }

  /**
   * Returns the chunks that show an approval on its call. Undefined when the event is not an approval, or its
   * call is not open in this response.
   */
  approval({ event_type, event_data }: SystemMessage): UIMessageChunk[] | undefined {
    const data = event_data as {
      approval_id: string
      tool_call_id: string
      approved: boolean
      reason?: string
      arguments?: UIJsonObject
    }
    if (event_type === 'tool.approval.requested' && this.#calls.has(data.tool_call_id)) {
      const { approval_id: approvalId, tool_call_id: toolCallId, reason, arguments: input } = data
      this.#calls.set(toolCallId, true)
      this.#asked.set(approvalId, toolCallId)
      return [
        ...this.#toRun(toolCallId, input),
        {
          type: 'tool-approval-request',
          approvalId,
          toolCallId,
          reason,
        },
      ]
    }
    if (event_type !== 'tool.approval.responded') return undefined
    // The approval was requested in an earlier response. The client sent this answer itself, so it needs no
    // chunk.
    const call = this.#asked.get(data.approval_id)
    if (call === undefined) return []
    this.#answered.add(call)
    const { approval_id: approvalId, approved, reason } = data
    return [
      {
        type: 'tool-approval-response',
        approvalId,
        approved,
        reason,
      },
    ]
  }

  /** Shows the person what will run, with defaults and transforms, in place of what the model sent. */
  #toRun(toolCallId: string, input: UIJsonObject | undefined): UIMessageChunk[] {
    const { toolName, input: sent } = this.#shown.get(toolCallId) ?? {}
    if (
      toolName === undefined ||
      input === undefined ||
      canonicalJson(sent as JsonValue) === canonicalJson(input as JsonValue)
    )
      return []
    const providerMetadata = this.#metadata
    return [{ type: 'tool-input-available', toolCallId, toolName, input, providerMetadata }]
  }

  #open(type: Block['type'], id: string): Block {
    const chunkId =
      type === 'reasoning'
        ? reasoningId(this.#turnId, this.#reasonings++)
        : `${this.#turnId}:t${this.#texts++}`
    const block = { type, id, chunkId, text: '', isOpen: type !== 'tool' }
    this.#blocks.push(block)
    return block
  }

  #closeBlocks(): UIMessageChunk[] {
    return this.#blocks.flatMap((block): UIMessageChunk[] => {
      if (!block.isOpen || block.type === 'tool') return []
      block.isOpen = false
      return [{ type: `${block.type}-end`, id: block.chunkId }]
    })
  }
}
