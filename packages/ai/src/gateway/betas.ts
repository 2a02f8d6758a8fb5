/**
 * Beta features of Anthropic that only change what a request or an answer contains, by the name without its date.
 * Features that change the price or the place of the work (`context-1m`, `fast-mode`, …) are for the gateway's owner
 * to allow.
 */
export const defaultBetas: readonly string[] = [
  'advanced-tool-use-*',
  'code-execution-*',
  'compact-*',
  'computer-use-*',
  'context-management-*',
  'effort-*',
  'extended-cache-ttl-*',
  'files-api-*',
  'fine-grained-tool-streaming-*',
  'interleaved-thinking-*',
  'mcp-client-*',
  'prompt-caching-*',
  'search-results-*',
  'skills-*',
  'structured-outputs-*',
  'token-efficient-tools-*',
  'tool-search-tool-*',
  'web-fetch-*',
]

/** The beta features that a request asks for, with those that are passed on. */
export interface AskedBetas {
  readonly allowed: readonly string[]
  readonly refused: readonly string[]
}

/** Reads the header `anthropic-beta`. `*` at the end of an allowed name means any version. */
export function readBetas(headers: Headers, allow: readonly string[] = defaultBetas): AskedBetas {
  const names = (headers.get('anthropic-beta') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => /^[\w.-]{1,100}$/.test(name))
  const isAllowed = (name: string): boolean =>
    allow.some((rule) => (rule.endsWith('*') ? name.startsWith(rule.slice(0, -1)) : name === rule))
  return {
    allowed: names.filter(isAllowed),
    refused: names.filter((name) => !isAllowed(name)),
  }
}
