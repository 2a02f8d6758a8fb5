import { encodeBase64, isPlainObject } from '@skein/base'
import { contentOf, type UserContent } from '@skein/ai'
import type { McpCallResult, McpContent } from './mcp-types.ts'

/** A tool's result for an MCP client: blocks as blocks, objects also as structured content. */
export function toMcpResult(result: unknown): McpCallResult {
  const blocks = contentOf(result)
  if (blocks.length > 0) return { content: blocks.map(toContent) }
  const content: McpContent[] = [{ type: 'text', text: toText(result) }]
  return isPlainObject(result) ? { content, structuredContent: asJson(result) } : { content }
}

export function toMcpError(message: string): McpCallResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}

function toContent(block: UserContent): McpContent {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
    case 'document': {
      const { source, mimeType } = block
      if (source.type === 'url') return { type: 'text', text: source.url }
      if (source.type === 'text') return { type: 'text', text: source.data }
      const data = source.type === 'bytes' ? encodeBase64(source.data) : source.data
      if (block.type === 'image') return { type: 'image', data, mimeType }
      return toResource(data, mimeType)
    }
    case 'audio':
      return { type: 'audio', data: encodeBase64(block.data), mimeType: block.mimeType }
    default:
      return toResource(encodeBase64(block.data), block.mimeType)
  }
}

/** A resource has to have an address; this one has only its content. */
function toResource(blob: string, mimeType: string): McpContent {
  return { type: 'resource', resource: { uri: `data:${mimeType}`, mimeType, blob } }
}

function toText(result: unknown): string {
  return typeof result === 'string' ? result : (stringify(result) ?? '')
}

function asJson(result: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(stringify(result) ?? '{}') as Record<string, unknown> // an object stays one
}

/** Bytes inside an object are base64. */
function stringify(value: unknown): string | undefined {
  return JSON.stringify(value, (_, item: unknown) =>
    item instanceof Uint8Array ? encodeBase64(item) : typeof item === 'bigint' ? `${item}` : item,
  )
}
