import { expect, test } from 'vitest'
import { llm } from '../llm.ts'
import { anthropicTools, googleTools, openaiTools, openrouterTools, xaiTools } from './index.ts'
import { says, vendorServer } from '../testing/index.ts'
import type { ModelReference } from '../contract/provider.ts'
import { anthropic } from '../vendors/anthropic.ts'
import { google } from '../vendors/google.ts'
import { openai } from '../vendors/openai.ts'
import { openrouter } from '../vendors/openrouter.ts'
import { xai } from '../vendors/xai.ts'

const mine = {
  name: 'mine',
  description: '',
  parameters: { type: 'object', properties: {} },
  run: () => 1,
}

async function toolsSent(
  model: ModelReference,
  prefix: string,
  tools: readonly object[],
): Promise<readonly object[]> {
  const server = vendorServer([says('Hi')])
  const config = { fetch: server.fetch, baseUrl: `http://vendor.test${prefix}`, apiKey: 'k' }
  await llm({ model, config, tools: [mine], params: { tools } }).generate('x')
  return server.requests[0]!.body['tools'] as readonly object[]
}

test.each<[string, ModelReference, string, readonly object[], readonly object[]]>([
  [
    'openai',
    openai('gpt-5'),
    '/v1',
    [
      openaiTools.webSearch({ search_context_size: 'low' }),
      openaiTools.codeInterpreter(),
      openaiTools.fileSearch({ vector_store_ids: ['vs_1'] }),
      openaiTools.mcp({ server_label: 'docs', server_url: 'https://mcp.test' }),
    ],
    [
      { type: 'web_search', search_context_size: 'low' },
      { type: 'code_interpreter', container: { type: 'auto' } },
      { type: 'file_search', vector_store_ids: ['vs_1'] },
      { type: 'mcp', server_label: 'docs', server_url: 'https://mcp.test' },
    ],
  ],
  [
    'anthropic',
    anthropic('claude-sonnet-4-5'),
    '/v1',
    [
      anthropicTools.webSearch({ max_uses: 2 }),
      anthropicTools.webFetch(),
      anthropicTools.codeExecution(),
    ],
    [
      { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
      { type: 'web_fetch_20250910', name: 'web_fetch' },
      { type: 'code_execution_20250825', name: 'code_execution' },
    ],
  ],
  [
    'google',
    google('gemini-3-pro'),
    '/v1beta',
    [
      googleTools.webSearch(),
      googleTools.webFetch(),
      googleTools.codeExecution(),
      googleTools.mcp({ name: 'docs', streamableHttpTransport: { url: 'https://mcp.test' } }),
    ],
    [
      { googleSearch: {} },
      { urlContext: {} },
      { codeExecution: {} },
      { mcpServers: [{ name: 'docs', streamableHttpTransport: { url: 'https://mcp.test' } }] },
    ],
  ],
  [
    'xai',
    xai('grok-4', { api: 'responses' }),
    '/v1',
    [xaiTools.xSearch({ allowed_x_handles: ['a'] }), xaiTools.codeExecution()],
    [{ type: 'x_search', allowed_x_handles: ['a'] }, { type: 'code_interpreter' }],
  ],
  [
    'openrouter',
    openrouter('x-ai/grok-4'),
    '/v1',
    [openrouterTools.webSearch({ max_results: 3 }), openrouterTools.webFetch()],
    [
      { type: 'openrouter:web_search', parameters: { max_results: 3 } },
      { type: 'openrouter:web_fetch', parameters: {} },
    ],
  ],
])(
  '%s: server tools are sent next to the tools of the caller',
  async (_, model, prefix, tools, expected) => {
    const [first, ...rest] = await toolsSent(model, prefix, tools)
    expect(JSON.stringify(first)).toContain('"mine"')
    expect(rest).toEqual(expected)
  },
)

test('a misspelled option does not compile', () => {
  // @ts-expect-error the option is search_context_size
  openaiTools.webSearch({ search_context: 'low' })
  // @ts-expect-error vector_store_ids is required
  expect(openaiTools.fileSearch({})).toEqual({ type: 'file_search' })
})

test('UPP-123 options go into the tool as they are given', () => {
  const container = { type: 'auto', file_ids: ['f'], memory_limit: '4g' } as const
  expect(openaiTools.codeInterpreter({ container })).toEqual({
    type: 'code_interpreter',
    container,
  })
  expect(openaiTools.codeInterpreter({ container: 'c1' })).toMatchObject({ container: 'c1' })
  expect(openaiTools.codeInterpreter()).toMatchObject({ container: { type: 'auto' } })
  expect(googleTools.maps({ enableWidget: true })).toEqual({ googleMaps: { enableWidget: true } })
  const timeRangeFilter = { startTime: 'a', endTime: 'b' }
  expect(googleTools.webSearch({ timeRangeFilter })).toEqual({ googleSearch: { timeRangeFilter } })
  expect(anthropicTools.webFetch({ max_uses: 2, max_content_tokens: 3 })).toEqual({
    type: 'web_fetch_20250910',
    name: 'web_fetch',
    max_uses: 2,
    max_content_tokens: 3,
  })
})
