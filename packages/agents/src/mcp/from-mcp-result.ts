import { decodeBase64, isPlainObject } from '@skein/base'
import type { UserContent } from '@skein/ai'

/**
 * What a tool of an MCP server answered, as a tool's result: structured content or a text as it is,
 * anything with media as content blocks. Throws what the server calls an error.
 */
export function fromMcpResult(answer: unknown): unknown {
  const result = isPlainObject(answer) ? answer : {}
  const blocks = Array.isArray(result['content']) ? result['content'].flatMap(toBlock) : []
  const text = blocks.every((block) => block.type === 'text') ? textOf(blocks) : undefined
  if (result['isError'] === true) throw new Error(text || 'The tool failed and did not say why.')
  if (text === undefined) return blocks
  // The text of a structured answer is the same again, for clients that know no other.
  return isPlainObject(result['structuredContent']) ? result['structuredContent'] : text
}

function textOf(blocks: readonly UserContent[]): string {
  return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

function toBlock(content: unknown): UserContent[] {
  if (!isPlainObject(content)) return []
  const { type, text, data, mimeType } = content
  switch (type) {
    case 'text':
      return [{ type, text: String(text) }]
    case 'image':
      return [{ type, source: { type: 'base64', data: String(data) }, mimeType: mime(mimeType) }]
    case 'audio':
      return [{ type, data: decodeBase64(String(data)), mimeType: mime(mimeType) }]
    case 'resource':
      return isPlainObject(content['resource']) ? [toResource(content['resource'])] : []
    case 'resource_link':
      return [{ type: 'text', text: [content['name'], content['uri']].filter(Boolean).join(': ') }]
    default:
      return [{ type: 'text', text: JSON.stringify(content) }] // of a newer protocol
  }
}

function toResource({ uri, text, blob, mimeType }: Record<string, unknown>): UserContent {
  if (typeof blob !== 'string') return { type: 'text', text: String(text ?? uri) }
  const kind = mime(mimeType)
  const source = { type: 'base64', data: blob } as const
  return kind.startsWith('image/')
    ? { type: 'image', source, mimeType: kind }
    : { type: 'document', source, mimeType: kind, title: String(uri) }
}

function mime(mimeType: unknown): string {
  return typeof mimeType === 'string' ? mimeType : 'application/octet-stream'
}
