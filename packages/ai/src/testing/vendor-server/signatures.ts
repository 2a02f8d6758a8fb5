import { type JsonObject, sha256Hex } from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import type { BlockKind, StreamEvent } from '../../contract/event.ts'
import type { WireName } from '../../contract/provider.ts'
import { withNative } from '../../wires/metadata.ts'

/** The vendor that issues signatures: its format and its host. */
interface Issuer {
  readonly wire: WireName
  readonly host: string
}

/**
 * Makes a signature like those that vendors attach to reasoning and calls. It contains the issuer and
 * a hash of the text, so that the checker recognises foreign signatures and changed texts.
 */
function signatureOf({ wire, host }: Issuer, text: string): string {
  return `${wire}@${host}.${sha256Hex(text).slice(0, 24)}`
}

/**
 * Returns a check whether this vendor issued a signature and, if a text is given, issued it for that
 * text.
 */
export function isIssuedBy(issuer: Issuer): (signature: string, text?: string) => boolean {
  const start = `${issuer.wire}@${issuer.host}.`
  return (signature, text) =>
    text === undefined
      ? signature.startsWith(start) || signature === standIn
      : signature === signatureOf(issuer, text)
}

/** The signature that Google documents for calls made by another model. */
const standIn = 'skip_thought_signature_validator'

interface OpenBlock {
  readonly kind: BlockKind
  readonly position: number
  readonly texts: string[]
}

/**
 * Adds to a scripted answer the metadata that the real vendor would add: signatures, encrypted reasoning.
 */
export async function* signed(
  batches: AsyncIterable<readonly StreamEvent[]>,
  issuer: Issuer,
  responseId: string,
): AsyncGenerator<readonly StreamEvent[], void> {
  const open = new Map<number, OpenBlock>()
  let blocks = 0
  let hasCall = false
  for await (const batch of batches) {
    yield batch.map((event) => {
      if (event.type === 'content_block_start') {
        const { block: kind } = event.delta
        const position = blocks++
        open.set(event.index, { kind, position, texts: [] })
        if (kind === 'reasoning' && issuer.wire === 'openai-responses')
          return { ...event, delta: { ...event.delta, itemId: reasoningId(responseId, position) } }
      } else if (event.type === 'reasoning_delta') {
        open.get(event.index)?.texts.push(event.delta.text)
      } else if (event.type === 'content_block_stop' && !event.delta.metadata) {
        const block = open.get(event.index)
        const isFirstCall = block?.kind === 'tool_call' && !hasCall
        if (isFirstCall) hasCall = true
        const metadata = block && nativeFor(issuer, block, { isFirstCall, responseId })
        if (metadata) return { ...event, delta: { metadata } }
      }
      return event
    })
  }
}

function reasoningId(responseId: string, position: number): string {
  return `rs_${responseId}_${position}`
}

function nativeFor(
  issuer: Issuer,
  { kind, position, texts }: OpenBlock,
  { isFirstCall, responseId }: { isFirstCall: boolean; responseId: string },
): ProviderMetadata | undefined {
  const { wire } = issuer
  const text = texts.join('')
  const signature = signatureOf(issuer, text)
  switch (wire) {
    case 'anthropic-messages':
      return kind === 'reasoning'
        ? withNative('anthropic', wire, { type: 'thinking', signature })
        : undefined
    case 'google-generate':
      // Only the first of several parallel calls has a signature.
      return isFirstCall ? withNative('google', wire, { thoughtSignature: signature }) : undefined
    case 'google-interactions':
      return kind === 'reasoning' ? withNative('google', wire, { signature }) : undefined
    case 'bedrock-converse':
      return kind === 'reasoning' ? withNative('bedrock', wire, { signature }) : undefined
    case 'openai-responses': {
      if (kind !== 'reasoning') return undefined
      const summary: JsonObject[] = text === '' ? [] : [{ type: 'summary_text', text }]
      const id = reasoningId(responseId, position)
      const native = { type: 'reasoning', id, summary, encrypted_content: signature }
      return withNative('openai', wire, native)
    }
    case 'openai-chat':
    case 'ollama-chat':
      return undefined
    default:
      return wire satisfies never
  }
}
