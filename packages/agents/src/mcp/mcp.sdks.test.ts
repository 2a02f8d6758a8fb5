import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { defer, llm, type Tool } from '@skein/ai'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { agent, AgentState, type Agent } from '../index.ts'
import { mcpHandlers, mcpTools } from './index.ts'
import type { McpTool } from './mcp-tools.ts'
import type { McpHandlersOptions } from './mcp-handlers.ts'

async function connect(server: {
  connect(transport: InMemoryTransport): Promise<void>
}): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'test', version: '1.0.0' })
  await Promise.all([server.connect(ours), client.connect(theirs)])
  return client
}

/** A server written with the official SDK. */
function library(): { server: McpServer; started: string[]; aborted: string[] } {
  const server = new McpServer({ name: 'library', version: '1.0.0' })
  const started: string[] = []
  const aborted: string[] = []
  server.registerTool(
    'find.book',
    {
      description: 'Finds a book.',
      inputSchema: { title: z.string() },
      annotations: { readOnlyHint: true },
    },
    ({ title }) => ({ content: [{ type: 'text', text: `${title}: shelf 3` }] }),
  )
  server.registerTool(
    'count',
    { description: 'Counts.', inputSchema: {}, outputSchema: { books: z.number() } },
    () => ({ content: [{ type: 'text', text: '{"books":7}' }], structuredContent: { books: 7 } }),
  )
  server.registerTool('cover', { description: 'Shows a cover.', inputSchema: {} }, () => ({
    content: [
      { type: 'text', text: 'Here:' },
      { type: 'image', data: 'AAEC', mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: 'AA==' },
      },
      { type: 'resource_link', uri: 'https://example.com/b', name: 'more' },
    ],
  }))
  server.registerTool('burn', { description: 'Burns a book.', inputSchema: {} }, () => ({
    content: [{ type: 'text', text: 'Books do not burn here.' }],
    isError: true,
  }))
  server.registerTool(
    'slow',
    { description: 'Takes for ever.', inputSchema: {} },
    (_: object, { signal }: { signal: AbortSignal }) => {
      started.push('slow')
      return new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          aborted.push('slow')
          resolve({ content: [] })
        }),
      )
    },
  )
  return { server, started, aborted }
}

describe('tools of an MCP server', () => {
  test('an agent calls them, and sees texts, objects, media and errors as such', async () => {
    const client = await connect(library().server)
    const tools = await mcpTools(client)
    expect(tools.map(({ name }) => name)).toEqual(['find_book', 'count', 'cover', 'burn', 'slow'])
    expect(tools[0]).toMatchObject({
      description: 'Finds a book.',
      parameters: {
        type: 'object',
        properties: { title: { type: 'string' } },
        required: ['title'],
      },
      metadata: { mcp: { name: 'find.book', annotations: { readOnlyHint: true } } },
    })
    const model = scripted([
      [
        calls('find_book', { title: 'Middlemarch' }),
        calls('count'),
        calls('cover'),
        calls('burn'),
        calls('find_book', { title: 3 }),
      ],
      says('Done.'),
    ])
    const { turn } = await agent({ model, tools }).generate('go', AgentState.initial())
    expect(turn.toolExecutions.map(({ result, isError }) => [result, isError])).toEqual([
      ['Middlemarch: shelf 3', false],
      [{ books: 7 }, false],
      [
        [
          { type: 'text', text: 'Here:' },
          { type: 'image', source: { type: 'base64', data: 'AAEC' }, mimeType: 'image/png' },
          {
            type: 'document',
            source: { type: 'base64', data: 'AA==' },
            mimeType: 'application/pdf',
            title: 'file:///a.pdf',
          },
          { type: 'text', text: 'more: https://example.com/b' },
        ],
        false,
      ],
      ['Books do not burn here.', true],
      [expect.stringContaining('title'), true],
    ])
    await client.close()
  })

  test('an abort reaches the server; a time limit is an error result', async () => {
    const { server, started, aborted } = library()
    const client = await connect(server)
    const tools = await mcpTools(client, { include: ({ name }) => name === 'slow', timeoutMs: 20 })
    expect(tools.length).toBe(1)
    const bounded = await llm({
      model: scripted([calls('slow'), says('Too slow.')]),
      tools,
    }).generate('go')
    expect(bounded.toolExecutions[0]).toMatchObject({ isError: true })

    const [slow] = await mcpTools(client, { include: ({ name }) => name === 'slow' })
    const coder = agent({ model: scripted([calls('slow')]), tools: [slow!] })
    const run = coder.stream('go', AgentState.initial())
    const over = expect(run.result).rejects.toMatchObject({ code: 'CANCELLED' })
    await vi.waitFor(() => expect(started.length).toBe(2))
    run.abort()
    await over
    await vi.waitFor(() => expect(aborted.length).toBe(2))
    await client.close()
  })

  test('names are made fit and different; what is not read-only may need a yes', async () => {
    const listed: McpTool[] = ['a/b', 'a.b', 'x'.repeat(90), 'x'.repeat(91)].map((name, index) => ({
      name,
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: index > 0 },
    }))
    const client = {
      listTools: async ({ cursor }: { cursor?: string } = {}) =>
        cursor ? { tools: listed.slice(2) } : { tools: listed.slice(0, 2), nextCursor: 'more' },
      callTool: async () => ({ content: [{ type: 'text', text: 'ran' }] }),
    }
    const tools = await mcpTools(client, {
      prefix: 'lib_',
      approval: ({ annotations }) => (annotations?.['readOnlyHint'] ? undefined : () => false),
    })
    expect(tools.map(({ name }) => name)).toEqual([
      'lib_a_b',
      'lib_a_b_2',
      `lib_${'x'.repeat(60)}`,
      `lib_${'x'.repeat(56)}_2`,
    ])
    const script = [[calls('lib_a_b'), calls('lib_a_b_2')], says('ok')]
    const turn = await llm({ model: scripted(script), tools }).generate('go')
    expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, false])
    await expect(mcpTools(client, { maxTools: 3 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
    const endless = { ...client, listTools: async () => ({ tools: [], nextCursor: 'again' }) }
    await expect(mcpTools(endless)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

describe('an agent as an MCP server', () => {
  async function serve(options: McpHandlersOptions): Promise<Client> {
    const server = new Server({ name: 'agents', version: '1.0.0' }, { capabilities: { tools: {} } })
    const handlers = mcpHandlers(options)
    server.setRequestHandler(ListToolsRequestSchema, handlers.listTools)
    server.setRequestHandler(CallToolRequestSchema, handlers.callTool)
    return connect(server)
  }
  const parameters = {
    type: 'object',
    properties: { topic: { type: 'string' } },
    required: ['topic'],
  } as const
  const served = (one: Agent) => ({
    name: 'research',
    description: 'Researches a topic.',
    parameters,
    agent: one,
    prompt: ({ topic }: { topic?: unknown }) => `Research ${String(topic)}`,
  })
  const look: Tool = {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    run: () => ({ seen: true, bytes: Uint8Array.of(1) }),
  }

  test('the official client lists it, calls it, and hears of its steps', async () => {
    const model = scripted([calls('look'), says('Threads are old.')])
    const client = await serve({ agents: [served(agent({ model, tools: [look] }))] })
    const { tools } = await client.listTools()
    expect(tools).toEqual([
      { name: 'research', description: 'Researches a topic.', inputSchema: parameters },
    ])
    const progress: unknown[] = []
    const answer = await client.callTool(
      { name: 'research', arguments: { topic: 'threads' } },
      undefined,
      { onprogress: (one) => progress.push(one) },
    )
    expect(answer).toEqual({ content: [{ type: 'text', text: 'Threads are old.' }] })
    expect(model.requests[0]?.messages[0]?.text).toBe('Research threads')
    expect(progress).toEqual([
      { progress: 1, message: 'Step 1' },
      { progress: 2, message: 'Step 2' },
    ])
    await client.close()
  })

  test('structured answers, failures, interrupts and unknown names', async () => {
    const structure = { type: 'object', properties: { year: { type: 'number' } } } as const
    const ask = { ...look, name: 'ask', run: () => defer({ kind: 'input', request: null }) }
    const client = await serve({
      agents: [
        served(agent({ model: scripted([says('{"year":1900}')]), structure })),
        {
          ...served(agent({ model: scripted([fails('sk-secret is not valid')]) })),
          name: 'broken',
        },
        { ...served(agent({ model: scripted([calls('ask')]), tools: [ask] })), name: 'waiting' },
        {
          ...served(agent({ model: scripted([]) })),
          name: 'bad_prompt',
          prompt: () => {
            throw new Error('internal detail')
          },
        },
      ],
    })
    const call = (name: string) => client.callTool({ name, arguments: { topic: 'x' } })
    expect(await call('research')).toMatchObject({ structuredContent: { year: 1900 } })
    expect(await call('broken')).toMatchObject({ isError: true })
    expect(await call('waiting')).toMatchObject({
      isError: true,
      content: [{ text: 'The agent waits for 1 answer(s).' }],
    })
    expect(await call('bad_prompt')).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'The agent failed.' }],
    })
    expect(await call('nothing')).toMatchObject({ isError: true })
    await client.close()
  })

  test('a cancelled request aborts the run', async () => {
    const model = scripted([waits(Infinity)])
    const client = await serve({ agents: [served(agent({ model }))] })
    const controller = new AbortController()
    const call = client.callTool({ name: 'research', arguments: {} }, undefined, {
      signal: controller.signal,
    })
    const over = expect(call).rejects.toThrow()
    await vi.waitFor(() => expect(model.requests.length).toBe(1))
    controller.abort()
    await over
    await vi.waitFor(() => expect(model.requests[0]?.signal.aborted).toBe(true))
    await client.close()
  })

  test('plain tools are served too, with their approval; what a tool of ours gave comes back the same', async () => {
    const image: Tool = {
      ...look,
      name: 'image',
      run: () => [
        { type: 'text', text: 'Here:' },
        {
          type: 'image',
          source: { type: 'bytes', data: Uint8Array.of(0, 1, 2) },
          mimeType: 'image/png',
        },
        { type: 'audio', data: Uint8Array.of(9), mimeType: 'audio/wav' },
        { type: 'document', source: { type: 'base64', data: 'AA==' }, mimeType: 'application/pdf' },
      ],
    }
    const denied: Tool = { ...look, name: 'denied', approval: () => false }
    const failing: Tool = {
      ...look,
      name: 'failing',
      run: () => {
        throw new Error('out of thread')
      },
    }
    const waiting: Tool = {
      ...look,
      name: 'waiting',
      run: () => defer({ kind: 'input', request: null }),
    }
    const client = await serve({ tools: [look, image, denied, failing, waiting] })
    const tools = await mcpTools(client)
    const names = tools.map(({ name }) => name)
    const model = scripted([names.map((name) => calls(name)), says('ok')])
    const { toolExecutions } = await llm({ model, tools }).generate('go')
    expect(toolExecutions.map(({ result, isError }) => [result, isError])).toEqual([
      [{ seen: true, bytes: { $bytes: 'AQ==' } }, false],
      [
        [
          { type: 'text', text: 'Here:' },
          { type: 'image', source: { type: 'base64', data: 'AAEC' }, mimeType: 'image/png' },
          { type: 'audio', data: { $bytes: 'CQ==' }, mimeType: 'audio/wav' },
          expect.objectContaining({ type: 'document', mimeType: 'application/pdf' }),
        ],
        false,
      ],
      ['The call to "denied" was denied.', true],
      ['out of thread', true],
      [expect.stringContaining('waits for an answer'), true],
    ])
    await client.close()
  })

  test('each kind of block that a tool gives becomes content of MCP', async () => {
    const bytes = Uint8Array.of(7)
    const every: Tool = {
      ...look,
      name: 'every',
      run: () => [
        { type: 'image', source: { type: 'url', url: 'https://a.test/i' }, mimeType: 'image/png' },
        { type: 'image', source: { type: 'base64', data: 'AA==' }, mimeType: 'image/gif' },
        { type: 'document', source: { type: 'text', data: 'notes' }, mimeType: 'text/plain' },
        { type: 'document', source: { type: 'url', url: 'https://a.test/d' }, mimeType: 'a/b' },
        { type: 'document', source: { type: 'base64', data: 'AQ==' }, mimeType: 'a/b' },
        { type: 'video', data: bytes, mimeType: 'video/mp4' },
      ],
    }
    const resource = (mimeType: string, blob: string) => ({
      type: 'resource',
      resource: { uri: `data:${mimeType}`, mimeType, blob },
    })
    const { callTool } = mcpHandlers({ tools: [every] })
    const { signal } = new AbortController()
    expect(await callTool({ params: { name: 'every' } }, { signal })).toEqual({
      content: [
        { type: 'text', text: 'https://a.test/i' },
        { type: 'image', data: 'AA==', mimeType: 'image/gif' },
        { type: 'text', text: 'notes' },
        { type: 'text', text: 'https://a.test/d' },
        resource('a/b', 'AQ=='),
        resource('video/mp4', 'Bw=='),
      ],
    })
    const unknown = await callTool({ params: { name: 'none' } }, { signal })
    expect(unknown).toEqual({
      content: [{ type: 'text', text: 'There is no tool "none".' }],
      isError: true,
    })
  })

  test('an answer with data has it as text and as structured content', async () => {
    const structure = { type: 'object', properties: { year: { type: 'number' } } }
    const model = scripted([says('{"year":1900}')])
    const one = served(agent({ model, structure }))
    const { callTool } = mcpHandlers({ agents: [one] })
    const { signal } = new AbortController()
    expect(await callTool({ params: { name: one.name, arguments: {} } }, { signal })).toEqual({
      content: [{ type: 'text', text: '{"year":1900}' }],
      structuredContent: { year: 1900 },
    })
  })

  test('a served tool gets the arguments of the client', async () => {
    const given: unknown[] = []
    const echo: Tool = { ...look, name: 'echo', run: (args: unknown) => (given.push(args), 'ok') }
    const { callTool } = mcpHandlers({ tools: [echo] })
    const { signal } = new AbortController()
    await callTool({ params: { name: 'echo', arguments: { a: 1 } } }, { signal })
    await callTool({ params: { name: 'echo' } }, { signal })
    expect(given).toEqual([{ a: 1 }, {}])
  })

  test('the schema of a tool is sent as that of an object', () => {
    const bare = { ...look, name: 'bare', parameters: { properties: { a: {} } } }
    const { tools } = mcpHandlers({ tools: [look, bare] }).listTools()
    expect(tools[1]).toEqual({
      name: 'bare',
      description: look.description,
      inputSchema: { type: 'object', properties: { a: {} } },
    })
    expect(tools.map(({ name }) => name)).toEqual(['look', 'bare'])
  })

  test('two things under one name are refused', () => {
    expect(() => mcpHandlers({ tools: [look, look] })).toThrow(/"look"/)
  })
})
