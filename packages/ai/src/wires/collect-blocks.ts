import type { ProviderMetadata } from '../contract/content.ts'
import type {
  BlockKind,
  ContentBlockStartEvent,
  MediaDeltaEvent,
  MessageStopEvent,
  StreamEvent,
} from '../contract/event.ts'
import { joinBytes } from '../media/bytes.ts'

/** A block as its events told it, for servers that answer whole. */
export interface CollectedBlock {
  readonly kind: BlockKind
  readonly start: ContentBlockStartEvent['delta']
  /** Text, reasoning, or the arguments of a call as JSON. */
  text: string
  readonly media: MediaDeltaEvent['delta'][]
  metadata: ProviderMetadata | undefined
}

/** A message as its events told it. */
export interface CollectedMessage {
  readonly blocks: readonly CollectedBlock[]
  readonly stop: MessageStopEvent['delta'] | undefined
}

/** The blocks of one message, calls among them, in the order they began. */
export function collectBlocks(events: readonly StreamEvent[]): CollectedMessage {
  const collector = new BlockCollector()
  let stop: MessageStopEvent['delta'] | undefined
  for (const event of events) {
    collector.push(event)
    if (event.type === 'message_stop') stop = event.delta
  }
  return { blocks: [...collector.blocks.values()], stop }
}

/** Collects blocks by index, for encoders that must wait for the end of some. */
export class BlockCollector {
  readonly blocks: Map<number, CollectedBlock> = new Map<number, CollectedBlock>()

  /** The block the event belongs to, grown by it. */
  push(event: StreamEvent): CollectedBlock | undefined {
    if (event.type === 'content_block_start') {
      const { delta: start } = event
      const block = { kind: start.block, start, text: '', media: [], metadata: undefined }
      this.blocks.set(event.index, block)
      return block
    }
    const block = this.blocks.get(event.index)
    if (!block || event.type === 'message_start' || event.type === 'message_stop') return undefined
    grow(block, event)
    return block
  }
}

function grow(block: CollectedBlock, event: StreamEvent): void {
  switch (event.type) {
    case 'text_delta':
    case 'reasoning_delta':
    case 'object_delta':
      block.text += event.delta.text
      return
    case 'tool_call_delta':
      block.text += event.delta.argumentsJson
      return
    case 'image_delta':
    case 'audio_delta':
    case 'video_delta':
      if (!event.delta.isPartial) block.media.push(event.delta)
      return
    case 'content_block_stop':
      block.metadata = event.delta.metadata
  }
}

/** The bytes of a media block. */
export function mediaBytes({ media }: CollectedBlock): Uint8Array {
  return joinBytes(media.map(({ data }) => data))
}
