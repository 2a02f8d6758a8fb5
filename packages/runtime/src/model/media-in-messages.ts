import type { Message } from '@skein/ai'
import type { KernelState } from '../state/kernel-state.ts'
import { fileIn } from './file-blocks.ts'
import { sameStart } from './view.ts'

/** Whether a message contains media or refers to files, so that what is sent depends on what the model accepts. */
function hasMedia(message: Message): boolean {
  let isMedia = media.get(message)
  if (isMedia === undefined) {
    isMedia = mediaItems(message).some((item) => fileIn(item) ?? mediaKind(item))
    media.set(message, isMedia)
  }
  return isMedia
}

const plain = new WeakMap<KernelState, readonly Message[]>()

/** Whether one of the messages has media. Messages already checked for the previous request are not checked again. */
export function haveMedia(state: KernelState, messages: readonly Message[]): boolean {
  const place = sameStart(plain.get(state) ?? [], messages)
  for (let at = place; at < messages.length; at++) if (hasMedia(messages[at]!)) return true
  plain.set(state, messages)
  return false
}

const media = new WeakMap<Message, boolean>()

/** The media that models take. */
export type MediaKind = 'image' | 'document' | 'audio' | 'video'

/** Returns the parts of a message that can be media or references to files. */
export function mediaItems(message: Message): readonly unknown[] {
  if (message.type === 'user') return message.content
  if (message.type !== 'tool_result') return []
  return message.results.flatMap(({ result }) => result)
}

/** Returns the kind of a block that contains the media themselves; undefined for other blocks. */
export function mediaKind(item: unknown): MediaKind | undefined {
  const { type } = (item ?? {}) as { readonly type?: unknown }
  const isMedia = type === 'image' || type === 'document' || type === 'audio' || type === 'video'
  return isMedia && 'mimeType' in (item as object) ? type : undefined
}
