import type { BoundLLMModel, LLMCapabilities, LLMRequest } from './provider.ts'
import { invalidRequest, type ErrorOrigin } from './to-upp-error.ts'
import type { Tool } from './tool.ts'
import type { JsonSchema } from '@skein/base'

/** What can be refused when an instance is made: names and capabilities (UPP §11.1, §12.2). */
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

/** What can be refused before a request is sent, after the middleware had its say. */
export function checkRequest(
  request: LLMRequest,
  { capabilities, provider }: BoundLLMModel,
  streaming: boolean,
): void {
  const origin: ErrorOrigin = { provider, modality: 'llm' }
  if (streaming && !capabilities.streaming) throw unsupported('streaming', origin)
  checkOptions(request, capabilities, origin)
  for (const message of request.messages) {
    if (message.type !== 'user') continue
    for (const { type } of message.content) {
      const needed = type in inputCapability ? inputCapability[type as MediaType] : undefined
      if (needed && !capabilities[needed]) throw unsupported(`${type} input`, origin)
    }
  }
}

const inputCapability = {
  image: 'imageInput',
  document: 'documentInput',
  audio: 'audioInput',
  video: 'videoInput',
} as const satisfies Record<string, keyof LLMCapabilities>
type MediaType = keyof typeof inputCapability

function unsupported(what: string, origin: ErrorOrigin): Error {
  return invalidRequest(
    `The provider "${origin.provider}" does not support ${what}.`,
    origin,
    'See `capabilities` of the instance.',
  )
}
