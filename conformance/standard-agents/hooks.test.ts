import { describe, expect, test } from 'vitest'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { calls, says } from '@skein/ai/testing'
import { defineHook, type HookDefinition } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const broken = tool('broken', (state) => {
  state.setValue('half', true)
  throw new Error('out of order')
})
const look = tool('look', (state) => {
  state.setValue('looked', true)
  return 'seen'
})

/** An agent with these hooks, and what happened when it was asked. */
async function asked(
  hooks: readonly HookDefinition[],
  script: Parameters<typeof solo>[1]['script'],
) {
  const agent = solo('hooked', { script, tools: [look, broken], system: 'You.', prompt: { hooks } })
  const it = await simulate({ agents: [agent] })
  const result = await it.ask('hi')
  return { it, agent, ...result }
}

const failuresOf = async (it: Simulation, id: string) =>
  (await it.events(id, 'error_raised')).map(({ code, message }) => `${code} ${message}`)

test('SA-12 every hook runs at its point, in the order of the run', async () => {
  const order: string[] = []
  const note = (line: string) => void order.push(line)
  const hooks: HookDefinition[] = [
    defineHook({ id: '1', hook: 'after_thread_created', execute: () => note('thread created') }),
    defineHook({
      id: '2',
      hook: 'before_create_message',
      execute: (_, one) => note(`before ${one.message.type}`),
    }),
    defineHook({
      id: '3',
      hook: 'after_create_message',
      execute: (_, one) => note(`after ${one.message.type}`),
    }),
    defineHook({ id: '4', hook: 'after_system_message', execute: () => note('system') }),
    defineHook({
      id: '5',
      hook: 'filter_messages',
      execute: (_, all) => note(`filter ${all.length}`),
    }),
    defineHook({
      id: '6',
      hook: 'prefilter_llm_history',
      execute: (_, all) => note(`prefilter ${all.length}`),
    }),
    defineHook({
      id: '7',
      hook: 'tool_call_started',
      execute: (_, call) => note(`started ${call.toolName}`),
    }),
    defineHook({
      id: '8',
      hook: 'after_tool_call_success',
      execute: (_, call) => note(`success ${call.toolName}`),
    }),
    defineHook({
      id: '9',
      hook: 'after_tool_call_failure',
      execute: (_, call) => note(`failure ${call.toolName}`),
    }),
    defineHook({
      id: '10',
      hook: 'before_store_tool_result',
      execute: (_, call) => note(`store ${call.toolName}`),
    }),
    defineHook({
      id: '11',
      hook: 'tool_call_done',
      execute: (_, call) => note(`done ${call.toolName}`),
    }),
    defineHook({ id: '12', hook: 'before_update_message', execute: () => note('before update') }),
    defineHook({ id: '13', hook: 'after_update_message', execute: () => note('after update') }),
  ]
  const { it, id } = await asked(hooks, [[calls('look'), calls('broken')], says('Ok.')])
  const [first] = await it.threads.messages(id)
  await it.threads.updateMessage(id, first!.id, 'hello')
  expect(order).toEqual([
    'thread created',
    'before user',
    'after user',
    'system',
    'filter 1',
    'prefilter 1',
    'before assistant',
    'after assistant',
    'started look',
    'success look',
    'store look',
    'done look',
    'started broken',
    'failure broken',
    'store broken',
    'done broken',
    'system',
    'filter 3',
    'prefilter 3',
    'before assistant',
    'after assistant',
    'before update',
    'after update',
  ])
})

test('SA-12 several hooks of one kind run in listed order, each on what the one before made', async () => {
  const add = (id: string) =>
    defineHook({ id, hook: 'after_system_message', execute: async (_, text) => `${text} ${id}` })
  const { agent } = await asked([add('one'), add('two'), add('three')], [says('x')])
  expect(requestsOf(agent)[0]!.system).toBe('You. one two three')
})

describe('what hooks change', () => {
  test('the system text; null leaves it out', async () => {
    const none = defineHook({ id: 'none', hook: 'after_system_message', execute: () => null })
    const { agent } = await asked([none], [says('x')])
    expect(requestsOf(agent)[0]!.system).toBeUndefined()
  })

  test('which stored messages are sent, and what they say; the log keeps them', async () => {
    const filter = defineHook({
      id: 'filter',
      hook: 'filter_messages',
      execute: (_, all) =>
        all
          .filter(({ message }) => message.type !== 'user' || message.text !== 'secret')
          .map((one) =>
            one.message.type === 'user' && one.message.text === 'hi'
              ? { ...one, message: new UserMessage('HI', { id: one.id }) }
              : one,
          ),
    })
    const { it, agent, id } = await asked([filter], () => says('x'))
    await it.run(id, 'secret')
    await it.run(id, 'more')
    expect(linesOf(requestsOf(agent)[2])).toEqual([
      'user: HI',
      'assistant: x',
      'assistant: x',
      'user: more',
    ])
    expect(await it.threads.messages(id)).toHaveLength(6)
  })

  test('the request last of all', async () => {
    const only = defineHook({
      id: 'only',
      hook: 'prefilter_llm_history',
      execute: (_, all) => [new UserMessage('Be kind.'), ...all.slice(-1)],
    })
    const { agent, id, it } = await asked([only], () => says('x'))
    await it.run(id, 'again')
    expect(linesOf(requestsOf(agent)[1])).toEqual(['user: Be kind.', 'user: again'])
  })

  test('an answer before it is stored', async () => {
    const polite = defineHook({
      id: 'polite',
      hook: 'before_create_message',
      execute: (_, { message }) =>
        message.type === 'assistant'
          ? { message: new AssistantMessage(`${message.text} Sir.`) }
          : undefined,
    })
    const { text, it, id } = await asked([polite], [says('Yes.')])
    expect(text).toBe('Yes. Sir.')
    const [, answer] = await it.threads.messages(id)
    expect(answer?.message).toMatchObject({ type: 'assistant', text: 'Yes. Sir.' })
  })

  test('a result, and what is stored of it', async () => {
    const hooks = [
      defineHook({
        id: 'fix',
        hook: 'after_tool_call_failure',
        execute: () => ({ result: 'fixed', isError: false }),
      }),
      defineHook({
        id: 'spoil',
        hook: 'after_tool_call_success',
        execute: (_, __, { result }) => ({ result: `${String(result)}?`, isError: true }),
      }),
      defineHook({
        id: 'store',
        hook: 'before_store_tool_result',
        execute: (_, __, { result, isError }) => ({ result: `<${String(result)}>`, isError }),
      }),
    ]
    const { it, id, agent } = await asked(hooks, [[calls('look'), calls('broken')], says('x')])
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe(
      'tool_result: look ! <seen?>, broken = "<fixed>"',
    )
    // Completed changes stay, and a hook that threw has changed nothing.
    expect(await it.threads.values.list(id)).toEqual({ looked: true })
  })

  test('null hides a call from models; the log keeps it', async () => {
    const hide = defineHook({ id: 'hide', hook: 'after_tool_call_success', execute: () => null })
    const { it, agent, id } = await asked(
      [hide],
      [[says('I look.'), calls('look'), calls('broken')], calls('look'), says('x')],
    )
    expect(linesOf(requestsOf(agent)[1])).toEqual([
      'user: hi',
      'assistant: I look. [broken({})]',
      'tool_result: broken ! out of order',
    ])
    expect(linesOf(requestsOf(agent)[2])).toEqual(linesOf(requestsOf(agent)[1]))
    const ends = await it.events(id, 'tool_execution_end')
    expect(ends.map(({ toolName, outcome }) => [toolName, outcome])).toEqual([
      ['look', 'success'],
      ['broken', 'failed'],
      ['look', 'success'],
    ])
    expect(await it.events(id, 'tool_call_hidden')).toHaveLength(2)
  })

  test('an edit of a message, from outside and by a tool', async () => {
    const told: string[] = []
    const hooks = [
      defineHook({
        id: 'before',
        hook: 'before_update_message',
        execute: (_, id, message) =>
          new UserMessage(`${message.type === 'user' ? message.text : ''}!`, { id }),
      }),
      defineHook({
        id: 'after',
        hook: 'after_update_message',
        execute: (_, { message }) => void told.push(message.type === 'user' ? message.text : ''),
      }),
    ]
    const edit = tool('edit', (state) => {
      state.updateMessage(state.getMessages()[0]!.id, 'by tool')
    })
    const agent = solo('edits', {
      script: [says('x'), calls('edit'), says('y')],
      tools: [edit],
      prompt: { hooks },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('hi')
    const [first] = await it.threads.messages(id)
    await it.threads.updateMessage(id, first!.id, 'by person')
    await it.run(id, 'go')
    expect(linesOf(requestsOf(agent)[1])[0]).toBe('user: by person!')
    expect(linesOf(requestsOf(agent)[2])[0]).toBe('user: by tool!')
    expect(told).toEqual(['by person!', 'by tool!'])
  })

  test('the thread itself: values, files, queued messages, the parent', async () => {
    const keep = defineHook({
      id: 'keep',
      hook: 'tool_call_done',
      execute: async (state, { toolName }) => {
        state.setValue('last', toolName)
        await state.writeFile('/log.txt', toolName)
        state.queueMessage({ content: `${toolName} was called`, isSilent: true })
      },
    })
    const { it, agent, id } = await asked([keep], [calls('look'), says('x')])
    expect(await it.threads.values.get(id, 'last')).toBe('look')
    expect(await it.threads.files.list(id)).toMatchObject([{ path: '/log.txt' }])
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe('user: look was called')
  })
})

describe('hooks that go wrong', () => {
  test('one that throws is noted in the log and passed over, with what it changed', async () => {
    const hooks = [
      defineHook({
        id: 'bad',
        hook: 'after_system_message',
        execute: (state) => {
          state.setValue('half', true)
          throw new Error('no such table')
        },
      }),
      defineHook({
        id: 'good',
        hook: 'after_system_message',
        execute: (_, text) => `${text} good`,
      }),
    ]
    const { it, agent, id, outcome } = await asked(hooks, [says('x')])
    expect(outcome).toBe('completed')
    expect(requestsOf(agent)[0]!.system).toBe('You. good')
    expect(await failuresOf(it, id)).toEqual(['HOOK_FAILED The hook "bad" failed: no such table'])
    expect(await it.threads.values.list(id)).toEqual({})
  })

  test('one that takes too long is passed over', async () => {
    const slow = defineHook({
      id: 'slow',
      hook: 'after_system_message',
      timeoutMs: 5,
      execute: () => new Promise<string>(() => {}),
    })
    const { it, id, agent } = await asked([slow], [says('x')])
    expect(requestsOf(agent)[0]!.system).toBe('You.')
    expect(await failuresOf(it, id)).toEqual([
      'HOOK_FAILED The hook "slow" failed: it took longer than 5 ms',
    ])
  })

  test('block: true before the request ends the session without asking the model', async () => {
    const guard = defineHook({
      id: 'guard',
      hook: 'prefilter_llm_history',
      execute: (_, all) => {
        const text = all.at(-1)?.type === 'user' ? (all.at(-1) as UserMessage).text : ''
        if (text === 'hi') throw Object.assign(new Error('Not today.'), { block: true })
      },
    })
    const { it, agent, id, outcome, reason, text } = await asked([guard], () => says('x'))
    expect({ outcome, reason, text }).toEqual({
      outcome: 'failed',
      reason: 'blocked',
      text: 'Not today.',
    })
    expect(requestsOf(agent)).toHaveLength(0)
    expect((await it.run(id, 'please')).outcome).toBe('completed')
  })

  test('block: true anywhere else is an error like any other', async () => {
    const odd = defineHook({
      id: 'odd',
      hook: 'before_create_message',
      execute: () => {
        throw Object.assign(new Error('Stop!'), { block: true })
      },
    })
    const { it, id, outcome } = await asked([odd], [says('x')])
    expect(outcome).toBe('completed')
    expect(await failuresOf(it, id)).toHaveLength(2)
  })
})

test('SA-12 each side has the hooks of its own prompt', async () => {
  const mark = (id: string, seen: string[]) =>
    defineHook({
      id,
      hook: 'after_create_message',
      execute: (_, { message }) => void seen.push(`${id} ${message.type}`),
    })
  const seen: string[] = []
  const done = tool('done')
  const agent = pair('both', {
    a: { script: [says('x')], prompt: { hooks: [mark('of_a', seen)] } },
    b: {
      script: [calls('done')],
      tools: [done],
      sessionStop: 'done',
      prompt: { hooks: [mark('of_b', seen)] },
    },
  })
  const it = await simulate({ agents: [agent] })
  await it.ask('hi')
  expect(seen).toEqual(['of_a user', 'of_a assistant', 'of_b assistant'])
})

test('SA-12 after_thread_created runs once, and not again for an agent that takes over', async () => {
  const seen: string[] = []
  const mark = (id: string) =>
    defineHook({
      id,
      hook: 'after_thread_created',
      execute: (state) => void seen.push(`${id} ${state.agentId}`),
    })
  const second = solo(
    'second',
    { script: [says('x')], prompt: { hooks: [mark('second')] } },
    { exposeAsTool: true, toolDescription: 'x' },
  )
  const first = solo('first', {
    script: [calls('second')],
    tools: [second],
    prompt: { hooks: [mark('first')] },
  })
  const it = await simulate({ agents: [first] })
  const id = await it.create()
  await it.idle()
  expect(seen).toEqual(['first first'])
  await it.run(id, 'go')
  expect(seen).toEqual(['first first'])
})
