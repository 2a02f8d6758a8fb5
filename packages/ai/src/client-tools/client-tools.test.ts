import { Image, llm, NoRetry, ToolResultMessage, type ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { anthropicClientTools, openaiClientTools } from '@skein/ai/client-tools'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { anthropicTools, openaiTools } from '@skein/ai/server-tools'
import { says, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, expectTypeOf, test } from 'vitest'

/** A `fetch` that gives one answer after the other and keeps the requests. */
function answers(...bodies: readonly object[]) {
  const requests: JsonObject[] = []
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    requests.push(JSON.parse(init.body as string) as JsonObject)
    return Response.json(bodies[requests.length - 1])
  }
  return { requests, config: { apiKey: 'k', fetch, retryStrategy: new NoRetry() } }
}

const usage = { input_tokens: 1, output_tokens: 1 }
const claude = (...content: readonly object[]): object => ({
  id: 'msg',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: content.some((block) => (block as JsonObject)['type'] === 'tool_use')
    ? 'tool_use'
    : 'end_turn',
  usage,
})
const response = (...output: readonly object[]): object => ({
  id: 'resp',
  object: 'response',
  status: 'completed',
  model: 'm',
  output,
  usage,
})
const claudeDone = claude({ type: 'text', text: 'done' })
const gptDone = response({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'done', annotations: [] }],
})
const screen = Image.fromBase64('aGk=', 'image/png')

describe('Anthropic', () => {
  const run = async (model: ModelReference, tool: never, block: object) => {
    const { requests, config } = answers(
      claude({ type: 'tool_use', id: 't1', ...block }),
      claudeDone,
    )
    const turn = await llm({ model, config, tools: [tool] }).generate('go')
    const [first, second] = requests
    return { turn, tools: first!['tools'], messages: (second?.['messages'] ?? []) as JsonObject[] }
  }

  test('bash: the definition of the vendor, typed arguments, an ordinary result', async () => {
    const ran: string[] = []
    const bash = anthropicClientTools.bash({
      run: (args) => {
        expectTypeOf(args.command).toEqualTypeOf<string | undefined>()
        ran.push(args.command ?? 'restart')
        return 'a.txt'
      },
      cache_control: { type: 'ephemeral' },
    })
    const block = { name: 'bash', input: { command: 'ls' } }
    const { turn, tools, messages } = await run(anthropic('claude-sonnet-5'), bash as never, block)
    expect(tools).toEqual([
      { name: 'bash', type: 'bash_20250124', cache_control: { type: 'ephemeral' } },
    ])
    expect(ran).toEqual(['ls'])
    expect(messages.at(-1)!['content']).toEqual([
      { type: 'tool_result', tool_use_id: 't1', content: 'a.txt' },
    ])
    expect(turn.response.text).toBe('done')
  })

  test('text editor and memory: their commands', async () => {
    const seen: unknown[] = []
    const editor = anthropicClientTools.textEditor({
      run: (args) => void seen.push(args),
      max_characters: 9,
    })
    const memory = anthropicClientTools.memory({ run: (args) => void seen.push(args) })
    const view = { command: 'view', path: '/a' }
    const one = await run(anthropic('claude-x'), editor as never, {
      name: editor.name,
      input: view,
    })
    expect(one.tools).toEqual([
      { name: 'str_replace_based_edit_tool', type: 'text_editor_20250728', max_characters: 9 },
    ])
    const rename = { command: 'rename', old_path: '/a', new_path: '/b' }
    const two = await run(anthropic('claude-x'), memory as never, { name: 'memory', input: rename })
    expect(two.tools).toEqual([{ name: 'memory', type: 'memory_20250818' }])
    expect(seen).toEqual([view, rename])
  })

  test('computer: one tool with the size of a display, the toolset without; the same arguments', async () => {
    const seen: unknown[] = []
    const act = (args: unknown) => {
      seen.push(args)
      return screen
    }
    const single = anthropicClientTools.computer({
      run: act,
      display_width_px: 800,
      display_height_px: 600,
    })
    const click = { action: 'left_click', coordinate: [1, 2] }
    const one = await run(anthropic('claude-opus-4-8'), single as never, {
      name: 'computer',
      input: click,
    })
    expect(one.tools).toEqual([
      {
        name: 'computer',
        type: 'computer_20251124',
        display_width_px: 800,
        display_height_px: 600,
      },
    ])
    expect(one.messages.at(-1)!['content']).toMatchObject([
      { content: [{ type: 'image', source: { type: 'base64', data: 'aGk=' } }] },
    ])
    const toolset = anthropicClientTools.computer({ run: act })
    const member = { name: 'left_click', toolset_name: 'computer', input: { coordinate: [1, 2] } }
    const two = await run(anthropic('claude-opus-5-5'), toolset as never, member)
    expect(two.tools).toEqual([{ type: 'computer_toolset_20260801' }])
    expect(seen).toEqual([click, click])
    expect(two.messages.at(-2)!['content']).toEqual([{ type: 'tool_use', id: 't1', ...member }])
  })

  test.each([
    ['bash', [{ type: 'bash_20250124', name: 'bash' }], { name: 'bash', input: { command: 'ls' } }],
    [
      'computer',
      [anthropicTools.computerUse({ display_width_px: 8, display_height_px: 6 })],
      { name: 'computer', input: { action: 'screenshot' } },
    ],
    [
      'computer',
      [{ type: 'computer_toolset_20260801' }],
      { name: 'screenshot', toolset_name: 'computer', input: {} },
    ],
  ])(
    'without a run, a call of %s waits, and its result can be given later',
    async (tool, tools, block) => {
      const { requests, config } = answers(
        claude({ type: 'tool_use', id: 't1', ...block }),
        claudeDone,
      )
      const instance = llm({ model: anthropic('claude-sonnet-5'), config, params: { tools } })
      const turn = await instance.generate('go')
      expect(requests).toHaveLength(1)
      expect(turn.stopReason).toBe('tool_use')
      expect(turn.openCalls).toMatchObject([
        { toolCallId: 't1', request: { kind: 'input', request: { tool } } },
      ])
      const result = new ToolResultMessage([{ toolCallId: 't1', result: 'ok' }])
      const next = await instance.generate([...turn.messages, result])
      expect(next.response.text).toBe('done')
      expect((requests[1]!['messages'] as JsonObject[]).at(-1)!['content']).toEqual([
        { type: 'tool_result', tool_use_id: 't1', content: 'ok' },
      ])
    },
  )

  test('with another vendor it is an ordinary function', async () => {
    const server = vendorServer([says('ok')])
    const config = { fetch: server.fetch, baseUrl: 'http://vendor.test/v1beta', apiKey: 'k' }
    const bash = anthropicClientTools.bash({ run: () => '' })
    await llm({ model: google('gemini-3-pro'), config, tools: [bash] }).generate('go')
    expect(server.requests[0]!.body['tools']).toMatchObject([
      { functionDeclarations: [{ name: 'bash', description: expect.stringContaining('command') }] },
    ])
  })
})

const shellItem = {
  type: 'shell_call',
  id: 'sh_1',
  call_id: 'call_1',
  status: 'completed',
  environment: { type: 'local' },
  action: { commands: ['ls'], timeout_ms: 1000, max_output_length: 99 },
}
const patchItem = {
  type: 'apply_patch_call',
  id: 'ap_1',
  call_id: 'call_1',
  status: 'completed',
  operation: { type: 'update_file', path: 'a', diff: '@@' },
}
const computerItem = {
  type: 'computer_call',
  id: 'cu_1',
  call_id: 'call_1',
  status: 'completed',
  pending_safety_checks: [{ id: 's1' }],
  actions: [{ type: 'click', x: 1, y: 2, button: 'left' }],
}
const localItem = {
  type: 'local_shell_call',
  id: 'ls_1',
  call_id: 'call_1',
  status: 'completed',
  action: { type: 'exec', command: ['ls'], env: {} },
}
const approvalItem = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  name: 'pay',
  server_label: 'shop',
  arguments: '{"sum":5}',
}

describe('OpenAI', () => {
  const { shell, localShell, applyPatch, computer, mcp } = openaiClientTools
  const out = { stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } } as const
  const fail = (): never => {
    throw new Error('broken')
  }

  test.each([
    [
      'shell',
      shell({ run: () => [out] }),
      shellItem,
      { type: 'shell', environment: { type: 'local' } },
      [{ type: 'shell_call_output', call_id: 'call_1', output: [out], max_output_length: 99 }],
    ],
    [
      'shell with a text',
      shell({ run: () => 'a' }),
      shellItem,
      { type: 'shell', environment: { type: 'local' } },
      [{ type: 'shell_call_output', call_id: 'call_1', output: [out], max_output_length: 99 }],
    ],
    [
      'shell that fails',
      shell({ run: fail }),
      shellItem,
      { type: 'shell', environment: { type: 'local' } },
      [
        {
          type: 'shell_call_output',
          call_id: 'call_1',
          max_output_length: 99,
          output: [{ stdout: '', stderr: 'broken', outcome: { type: 'exit', exit_code: 1 } }],
        },
      ],
    ],
    [
      'local shell',
      localShell({ run: ({ command }) => command.join() }),
      localItem,
      { type: 'local_shell' },
      [{ type: 'local_shell_call_output', id: 'call_1', output: 'ls' }],
    ],
    [
      'apply patch',
      applyPatch({ run: ({ path }) => `patched ${path}` }),
      patchItem,
      { type: 'apply_patch' },
      [
        {
          type: 'apply_patch_call_output',
          call_id: 'call_1',
          status: 'completed',
          output: 'patched a',
        },
      ],
    ],
    [
      'apply patch that fails',
      applyPatch({ run: () => ({ status: 'failed' as const, output: 'no' }) }),
      patchItem,
      { type: 'apply_patch' },
      [{ type: 'apply_patch_call_output', call_id: 'call_1', status: 'failed', output: 'no' }],
    ],
    [
      'computer',
      computer({
        run: ({ pending_safety_checks: checks }) => ({
          screenshot: screen,
          acknowledged_safety_checks: checks!,
        }),
      }),
      computerItem,
      { type: 'computer' },
      [
        {
          type: 'computer_call_output',
          call_id: 'call_1',
          output: { type: 'computer_screenshot', image_url: 'data:image/png;base64,aGk=' },
          acknowledged_safety_checks: [{ id: 's1' }],
        },
      ],
    ],
    [
      'approval of MCP',
      mcp({
        server_label: 'shop',
        server_url: 'https://x',
        require_approval: 'always',
        run: ({ name, arguments: args }) => name === 'pay' && (args as JsonObject)['sum'] === 5,
      }),
      approvalItem,
      { type: 'mcp', server_label: 'shop', server_url: 'https://x', require_approval: 'always' },
      [{ type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }],
    ],
    [
      'approval of MCP, refused',
      mcp({ server_label: 'shop', run: () => ({ approve: false, reason: 'too much' }) }),
      approvalItem,
      { type: 'mcp', server_label: 'shop' },
      [
        {
          type: 'mcp_approval_response',
          approval_request_id: 'mcpr_1',
          approve: false,
          reason: 'too much',
        },
      ],
    ],
  ] as const)(
    '%s: defined, run and answered in the form of the vendor',
    async (_name, tool, item, definition, output) => {
      const { requests, config } = answers(response(item), gptDone)
      const turn = await llm({ model: openai('gpt-5.5'), config, tools: [tool as never] }).generate(
        'go',
      )
      expect(requests[0]!['tools']).toEqual([definition])
      expect(turn.response.text).toBe('done')
      expect((requests[1]!['input'] as JsonObject[]).slice(1)).toEqual([item, ...output])
    },
  )

  test('a failed call of the computer is told in words', async () => {
    const { requests, config } = answers(response(computerItem), gptDone)
    await llm({ model: openai('gpt-5.5'), config, tools: [computer({ run: fail })] }).generate('go')
    const [, , output, words] = requests[1]!['input'] as JsonObject[]
    expect(output).toMatchObject({ type: 'computer_call_output' })
    expect(JSON.stringify(words)).toContain('broken')
  })

  test.each([shellItem, patchItem, computerItem, localItem, approvalItem])(
    'without a run, $type waits',
    async (item) => {
      const { requests, config } = answers(response(item))
      const params = { tools: [openaiTools.computer()] }
      const turn = await llm({ model: openai('gpt-5.5'), config, params }).generate('go')
      expect(requests).toHaveLength(1)
      expect(turn.stopReason).toBe('tool_use')
      expect(turn.openCalls).toHaveLength(1)
      expect(turn.openCalls[0]).toMatchObject({ request: { kind: 'input' } })
    },
  )

  test('a shell that OpenAI runs itself is no call', async () => {
    const { config } = answers(response(shellItem, ...(gptDone as { output: object[] }).output))
    const params = { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }
    const turn = await llm({ model: openai('gpt-5.5'), config, params }).generate('go')
    expect(turn.openCalls).toEqual([])
    expect(turn.stopReason).toBe('end_turn')
    expect(turn.response.content[0]).toMatchObject({ type: 'native', name: 'shell_call' })
  })

  test('arguments that are no such call never run', async () => {
    const { config } = answers(response({ ...shellItem, action: { commands: 'rm' } }), gptDone)
    const ran: unknown[] = []
    const tools = [shell({ run: (args) => (ran.push(args), 'x') })]
    const turn = await llm({ model: openai('gpt-5.5'), config, tools }).generate('go')
    expect(ran).toEqual([])
    expect(turn.toolExecutions[0]).toMatchObject({ isError: true })
  })
})
