import type { JsonSchema } from '@skein/base'
import type { DocumentBlock, ImageBlock, UserContent } from '../contract/content.ts'
import { type ErrorOrigin, invalidRequest } from '../contract/error.ts'
import type { Message } from '../contract/message.ts'
import type { BoundLLMModel, LLMCapabilities, LLMRequest } from '../contract/provider.ts'
import type { Tool } from '../contract/tool.ts'

/**
 * Throws if tool names are not unique, or if the model does not support tools or structured output although
 * they are used (UPP §11.1, §12.2).
 */
export function checkOptions(
  { tools, structure }: { tools: readonly Tool[]; structure?: JsonSchema | undefined },
  capabilities: LLMCapabilities,
  origin: ErrorOrigin,
): void {
  if (tools.length > 0 && !capabilities.tools) throw unsupported('tools', origin)
  if (structure && !capabilities.structuredOutput) throw unsupported('structured output', origin)
  const names = new Set<string>()
  for (const { name } of tools) {
    if (names.has(name))
      throw invalidRequest(`Two tools are named "${name}".`, origin, 'Tool names must be unique.')
    names.add(name)
  }
}

/**
 * Throws if a request cannot be sent to this model. Hooks may have changed it, so it is checked as the caller's
 * is. Media are checked only in the input; those of earlier messages are replaced, see `fitRequest`.
 */
export function checkRequest(request: LLMRequest, model: BoundLLMModel, streaming: boolean): void {
  const { capabilities, provider } = model
  const origin: ErrorOrigin = { provider, modality: 'llm' }
  if (streaming && !capabilities.streaming) throw unsupported('streaming', origin)
  checkOptions(request, capabilities, origin)
  const { messages } = request
  const start = inputStart(messages)
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.type !== 'user') continue
    for (const block of message.content) {
      const { type } = block
      if (type === 'text') continue // most blocks, and a history has many
      if (type === 'image' || type === 'document') checkSource(block, origin)
      if (index < start) continue
      const capability = mediaCapability(block)
      if (capability && !capabilities[capability]) throw unsupported(`${type} input`, origin)
      const refusal = model.refuse?.(block)
      if (refusal) throw refusal
    }
  }
}

/**
 * Returns the index of the first message after the last finished answer (one without open calls). What the user
 * says from there on is the input that the next answer is about; everything before is history.
 */
export function inputStart(messages: readonly Message[]): number {
  return (
    messages.findLastIndex((message) => message.type === 'assistant' && !message.hasToolCalls) + 1
  )
}

/** Returns the capability that a model needs for a block of a user; undefined if none says. */
export function mediaCapability({ type }: UserContent): MediaCapability | undefined {
  return type === 'text' || type === 'binary' ? undefined : `${type}Input`
}

type MediaCapability = 'imageInput' | 'documentInput' | 'videoInput' | 'audioInput'

const knownSources = {
  image: ['bytes', 'base64', 'url'],
  document: ['base64', 'url', 'text'],
} as const

/** Throws for a kind of source that this package does not have, e.g. a vendor's id of an uploaded file. */
function checkSource({ type, source }: ImageBlock | DocumentBlock, origin: ErrorOrigin): void {
  const sourceTypes: readonly string[] = knownSources[type]
  if (sourceTypes.includes(source?.type)) return
  throw invalidRequest(
    `The source of the ${type} has the type ${JSON.stringify(source?.type)}.`,
    origin,
    `Known: ${sourceTypes.join(', ')}. For a file that was uploaded to a vendor: Document.fromUpload({ provider, fileId }), Image.fromUpload(…).`,
  )
}

function unsupported(what: string, origin: ErrorOrigin): Error {
  return invalidRequest(
    `The provider "${origin.provider}" does not support ${what}.`,
    origin,
    'See `capabilities` of the instance.',
  )
}
