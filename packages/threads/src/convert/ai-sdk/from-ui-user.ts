import { joinPointer, type Loss } from '../../issue.ts'
import type { MessagePart, UserContent } from '../../types.ts'
import { CARRIER, without } from './carrier.ts'
import { contentOfUrl } from '../bridge-media.ts'
import type { ProviderMetadata, UIMessagePart } from './types.ts'

/** A person's parts as one prompt: plain text when that is all there is, else a list. */
export function userPrompt(
  parts: readonly UIMessagePart[],
  pointer: string,
  lost: Loss[],
): MessagePart[] {
  const items: UserContent[] = []
  parts.forEach((part, index) => {
    const item = contentItem(part)
    if (item !== undefined) items.push(item)
    else {
      const reason = `a user turn has no place for a part of type ${part.type}`
      lost.push({ pointer: joinPointer(pointer, 'parts', index), reason })
    }
  })
  if (items.length === 0) return []
  const content = items.length === 1 && typeof items[0] === 'string' ? items[0] : items
  return [{ part_kind: 'user-prompt', content }]
}

function contentItem(part: UIMessagePart): UserContent | undefined {
  if (part.type === 'text') {
    const others = foreignMetadata(part.providerMetadata)
    return others
      ? ({ kind: 'text-content', content: part.text, ...others } as UserContent)
      : part.text
  }
  if (part.type !== 'file') return undefined
  const { filename, providerReference } = part
  return {
    ...contentOfUrl(part.url, part.mediaType),
    ...(filename !== undefined && { filename }),
    ...(providerReference && { provider_reference: providerReference }),
    ...foreignMetadata(part.providerMetadata),
  } as UserContent
}

/** Metadata of other systems, under the name that `toUIMessages` reads it from again. */
export function foreignMetadata(
  metadata: ProviderMetadata | undefined,
  ...consumed: readonly string[]
): { provider_metadata: ProviderMetadata } | undefined {
  if (!metadata) return undefined
  const others = without(metadata, CARRIER, ...consumed) as ProviderMetadata
  return Object.keys(others).length === 0 ? undefined : { provider_metadata: others }
}
