import { sha256Hex, type JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import type { BlockKind, StreamEvent } from '../../contract/event.ts'
import { withNative } from '../../wires/native.ts'
import type { WireName } from '../../wires/wire.ts'

/** One vendor: its format and its address. */
export interface Issuer {
  readonly wire: WireName
  readonly host: string
}

/**
 * Opaque texts as vendors attach them to reasoning and calls. They are made from who signs what, so
 * that a checker can tell a foreign one, and a changed text.
 */
function signatureOf({ wire, host }: Issuer, text: string): string {
  return `${wire}@${host}.${sha256Hex(text).slice(0, 24)}`
}

/** Whether this vendor issued a signature; with a text: for that text. */
export function isIssuedBy(issuer: Issuer): (signature: string, text?: string) => boolean {
  const start = `${issuer.wire}@${issuer.host}.`
  return (signature, text) =>
    text === undefined
      ? signature.startsWith(start) || signature === standIn
      : signature === signatureOf(issuer, text)
}

/** What Google documents for calls that another model made. */
const standIn = 'skip_thought_signature_validator'

interface OpenBlock {
  readonly kind: BlockKind
  readonly position: number
  readonly texts: string[]
}

/** Adds to a scripted answer what the vendor would have added: signatures, encrypted reasoning. */
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
        open.set(event.index, { kind, position: blocks++, texts: [] })
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
      // Only the first of several parallel calls carries one.
      return isFirstCall ? withNative('google', wire, { thoughtSignature: signature }) : undefined
    case 'openai-responses': {
      if (kind !== 'reasoning') return undefined
      const summary: JsonObject[] = text === '' ? [] : [{ type: 'summary_text', text }]
      const id = `rs_${responseId}_${position}`
      const native = { type: 'reasoning', id, summary, encrypted_content: signature }
      return withNative('openai', wire, native)
    }
    default:
      return undefined
  }
}
