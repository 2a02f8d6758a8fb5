import { systemClock, uuidV4 } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import type {
  BlockKind,
  ContentBlockStartEvent,
  MediaDeltaEvent,
  MessageStopEvent,
  StreamEvent,
} from '../contract/event.ts'
import { joinBytes } from '../media/bytes.ts'
import { MessageFold } from '../turn/fold-message.ts'
import type { AssistantMessage } from '../contract/message.ts'
import { requestError } from './wire-error.ts'
import type { DecodeContext } from './wire.ts'

/** A block collected from its events, for servers that send complete answers. */
export interface CollectedBlock {
  readonly kind: BlockKind
  readonly start: ContentBlockStartEvent['delta']
  /** The text, the reasoning, or the arguments of a call as JSON. */
  text: string
  readonly media: MediaDeltaEvent['delta'][]
  metadata: ProviderMetadata | undefined
}

/** A message collected from its events. */
interface CollectedMessage {
  readonly blocks: readonly CollectedBlock[]
  readonly stop: MessageStopEvent['delta'] | undefined
}

/** Collects the blocks and calls of one message in the order in which they began. */
export function collectBlocks(events: readonly StreamEvent[]): CollectedMessage {
  const collector = new BlockCollector()
  let stop: MessageStopEvent['delta'] | undefined
  for (const event of events) {
    collector.push(event)
    if (event.type === 'message_stop') stop = event.delta
  }
  return { blocks: [...collector.blocks.values()], stop }
}

/** Collects blocks by index, for encoders that can write some blocks only at their end. */
export class BlockCollector {
  readonly blocks: Map<number, CollectedBlock> = new Map<number, CollectedBlock>()

  /** Adds the event to its block and returns the block; undefined for events without a block. */
  push(event: StreamEvent): CollectedBlock | undefined {
    if (event.type === 'content_block_start') {
      const { delta: start } = event
      const block = { kind: start.block, start, text: '', media: [], metadata: undefined }
      this.blocks.set(event.index, block)
      return block
    }
    const block = this.blocks.get(event.index)
    if (!block) return undefined
    switch (event.type) {
      case 'text_delta':
      case 'reasoning_delta':
      case 'object_delta':
        block.text += event.delta.text
        return block
      case 'tool_call_delta':
        block.text += event.delta.argumentsJson
        return block
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
        if (!event.delta.isPartial) block.media.push(event.delta)
        return block
      case 'content_block_stop':
        block.metadata = event.delta.metadata
        return block
      case 'tool_execution_start':
      case 'tool_execution_end':
        return block
      case 'message_start':
      case 'message_stop':
        return undefined
      default:
        return event satisfies never
    }
  }
}

/** Returns the bytes of a media block. */
export function mediaBytes({ media }: CollectedBlock): Uint8Array {
  return joinBytes(media.map(({ data }) => data))
}

/** Makes the context with which a server decodes an assistant message that its client sent. */
export function answerContext<Dialect>(provider: string, dialect: Dialect): DecodeContext<Dialect> {
  return {
    target: { provider, modelId: '', dialect },
    request: {
      messages: [],
      params: {},
      tools: [],
      config: {},
      signal: new AbortController().signal,
      clock: systemClock,
      ids: uuidV4,
    },
    warnings: [],
  }
}

/**
 * Decodes an assistant message that a client sent, with the decoder for a vendor's answers. Throws
 * INVALID_REQUEST if the message is malformed.
 */
export function readAnswer(
  provider: string,
  at: string,
  decode: () => readonly StreamEvent[],
): AssistantMessage {
  try {
    const fold = new MessageFold()
    fold.push(decode())
    return fold.message({ ids: uuidV4, clock: systemClock })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw requestError(provider, `The field "${at}" cannot be read: ${reason}`)
  }
}
