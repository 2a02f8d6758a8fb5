// In which order the calls of one message run, and that each call is one call, whatever its id is.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { type AssistantMessage, defer, type Tool, tool as askTool } from '@skein/ai'
import { z } from 'zod'
import { calls, says, scripted, type ScriptPart } from '@skein/ai/testing'
import {
  defineAgent,
  defineTool,
  type AgentDefinition,
  type HookDefinition,
  defineHook,
  type ToolDefinition,
} from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const READ = { risk: 'read_only' } as const
const WRITE = { risk: 'write_low_risk', idempotent: true } as const

/** Tools of every kind; `ran` is what took effect, in order. `meet` holds up each child before it answers. */
function world(meet: () => Promise<void> = async () => {}) {
  const ran: string[] = []
  const note = (name: string, options: Parameters<typeof tool>[2]): ToolDefinition =>
    tool(name, (_, { n }) => (ran.push(`${name}${String(n ?? '')}`), `${name} done`), options)
  const tools = {
    look: note('look', READ),
    mail: note('mail', WRITE),
    pay: note('pay', {
      risk: 'write_high_risk',
      rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
    }),
    ask: defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' }),
    child: pair('child', {
      a: {
        script: async () => {
          await meet()
          return calls('finish', { text: 'found' })
        },
        tools: [tool('finish', (_, { n }) => ran.push(`child${String(n ?? '')}`))],
        sessionStop: { name: 'finish', messageProperty: 'text' },
      },
      b: { script: [] },
    }),
  }
  return { ran, tools }
}

async function decide(it: Simulation, toolName: string): Promise<void> {
  const item = (await it.runtime.inbox.list()).find((one) => one.toolName === toolName)
  const { threadId, interruptId, kind } = item!
  const key = { threadId, interruptId, by: 'ann' }
  if (kind === 'approval') await it.runtime.inbox.approve(key)
  else await it.runtime.inbox.answer(key, { type: 'result', value: 'yes' })
  await it.idle()
}

describe.each([
  ['in sequence', { parallelToolCalls: false }, false],
  ['with parallel calls', { parallelToolCalls: true }, false],
  ['of an agent()', {}, true],
] as const)('%s', (_, prompt, isAgent) => {
  const setUp = (message: readonly ScriptPart[]) => {
    const { ran, tools } = world()
    const script = [message, says('Done.')]
    const { look, mail, pay } = tools
    const ask = askTool({
      name: 'ask',
      description: 'Asks a person.',
      parameters: z.looseObject({}),
      risk: 'read_only',
      run: () => defer({ kind: 'input', request: null }),
    })
    const own = [look, mail, pay, ask] as readonly Tool[] // each of them has a `run`
    const desk = isAgent
      ? defineAgent({
          name: 'desk',
          sideA: { agent: uapAgent({ model: scripted(script), tools: own }) },
        })
      : solo('desk', { script, tools: [look, mail, pay, tools.ask], prompt })
    return { ran, desk }
  }

  test('a write waits for an approval before it', async () => {
    const { ran, desk } = setUp([calls('pay'), calls('mail')])
    const it = await simulate({ agents: [desk] })
    const id = await it.create({ message: 'go' })
    await it.idle()
    expect(ran).toEqual([])
    expect((await it.runtime.inbox.list()).map(({ toolName }) => toolName)).toEqual(['pay'])
    await decide(it, 'pay')
    expect(ran).toEqual(['pay', 'mail'])
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Done.' })
  })

  test('a write waits for a question before it; a read does not', async () => {
    const { ran, desk } = setUp([
      calls('ask'),
      calls('look'),
      calls('mail'),
      calls('look', { n: 2 }),
    ])
    const it = await simulate({ agents: [desk] })
    const id = await it.create({ message: 'go' })
    await it.idle()
    expect(ran).toEqual(['look'])
    await decide(it, 'ask')
    expect(ran).toEqual(['look', 'mail', 'look2'])
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed' })
    const ended = await it.events(id, 'message_added')
    expect(ended.length).toBeGreaterThan(1)
  })

  test('two writes that need approval are put to a person together, and run in order', async () => {
    const { ran, desk } = setUp([calls('pay', { n: 1 }), calls('pay', { n: 2 })])
    const it = await simulate({ agents: [desk] })
    const id = await it.create({ message: 'go' })
    await it.idle()
    const items = await it.runtime.inbox.list()
    expect(items).toHaveLength(2)
    // The second one is approved first, and waits for the first.
    for (const { threadId, interruptId } of items.toReversed()) {
      expect(ran).toEqual([])
      await it.runtime.inbox.approve({ threadId, interruptId, by: 'ann' })
      await it.idle()
    }
    expect(ran).toEqual(['pay1', 'pay2'])
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed' })
  })

  test('a write that was denied lets the next write run, and results keep the order of the calls', async () => {
    const { ran, desk } = setUp([calls('pay'), calls('look'), calls('mail')])
    const it = await simulate({ agents: [desk] })
    const id = await it.create({ message: 'go' })
    await it.idle()
    expect(ran).toEqual(['look'])
    const { threadId, interruptId } = (await it.runtime.inbox.list())[0]!
    await it.runtime.inbox.deny({ threadId, interruptId, by: 'ann', reason: 'no' })
    await it.idle()
    expect(ran).toEqual(['look', 'mail'])
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed' })
  })
})

test('a write waits for a blocking child before it; two children next to each other overlap', async () => {
  for (const parallelToolCalls of [false, true]) {
    // Neither child answers until both have been asked, so that they overlap no matter how long a commit takes.
    const both = latch()
    let asked = 0
    const { ran, tools } = world(async () => {
      if (++asked === 2) both.open()
      await both.reached
    })
    const desk = solo('desk', {
      script: [
        [calls('child', { message: 'a' }), calls('child', { message: 'b' }), calls('mail')],
        says('Done.'),
      ],
      tools: [tools.child, tools.mail],
      prompt: { parallelToolCalls },
    })
    const it = await simulate({ agents: [desk], starts: true })
    const { id } = await it.ask('go')
    expect(ran).toEqual(['child', 'child', 'mail'])
    const types = (await it.threads.events(id)).map(({ event }) => event)
    const opened = types.flatMap((event, at) => (event.type === 'interrupt_opened' ? [at] : []))
    const answered = types.findIndex(({ type }) => type === 'interrupt_answered')
    expect(opened.every((at) => at < answered)).toBe(true)
    expect(linesOf(requestsOf(desk)[1]).at(-1)).toMatch(/child = .*child = .*mail = /)
  }
})

test('in any message, a write starts only when every earlier call has ended', async () => {
  const kinds = ['look', 'mail', 'ask', 'pay', 'child'] as const
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      fc.boolean(),
      async (names, parallelToolCalls, isReversed) => {
        const { tools } = world()
        const made = names.map((name, n) => calls(name, { n, message: `${n}` }, { id: `c${n}` }))
        const desk = solo('desk', {
          script: [made, says('Done.')],
          tools: Object.values(tools),
          prompt: { parallelToolCalls },
        })
        const it = await simulate({ agents: [desk] })
        const id = await it.create({ message: 'go' })
        await it.idle()
        for (let rounds = 0; rounds < 10; rounds++) {
          const items = await it.runtime.inbox.list()
          const item = isReversed ? items.at(-1) : items[0]
          if (!item) break
          await decide(it, item.toolName)
        }
        expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed' })
        const ended = new Set<string>()
        for (const { event } of await it.threads.events(id)) {
          if (event.type === 'tool_execution_end') ended.add(event.toolCallId)
          if (event.type !== 'tool_execution_start') continue
          const place = Number(event.toolCallId.slice(1))
          const isWrite = names[place] === 'mail' || names[place] === 'pay'
          if (isWrite) for (let n = 0; n < place; n++) expect(ended).toContain(`c${n}`)
        }
        await it.stop()
      },
    ),
    { numRuns: 60 },
  )
})

describe('call ids', () => {
  const idsOf = async (it: Simulation, id: string): Promise<string[]> =>
    (await it.threads.messages(id)).flatMap(({ message }) =>
      message.type === 'assistant'
        ? (message.toolCalls ?? []).map(({ toolCallId }) => toolCallId)
        : [],
    )

  test('are unique in a thread, whatever the model sends, and every call runs once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.constantFrom('', 'same', 'c1'), { minLength: 1, maxLength: 3 }), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.boolean(),
        async (steps, isWrite) => {
          const ran: unknown[] = []
          const act = tool('act', (_, { n }) => ran.push(n), isWrite ? WRITE : READ)
          let n = 0
          const script = steps.map((ids) => ids.map((id) => calls('act', { n: n++ }, { id })))
          const desk = solo('desk', { script: [...script, says('Done.')], tools: [act] })
          const it = await simulate({ agents: [desk] })
          const { id, outcome } = await it.ask('go')
          expect(outcome).toBe('completed')
          expect(ran).toEqual(Array.from({ length: n }, (_, place) => place))
          const ids = await idsOf(it, id)
          expect(ids).not.toContain('')
          expect(new Set(ids).size).toBe(n)
          // Every request pairs each call with its own result.
          for (const { messages } of requestsOf(desk))
            messages.forEach((message, place) => {
              const after = messages[place + 1]
              if (
                message.type === 'assistant' &&
                message.hasToolCalls &&
                after?.type === 'tool_result'
              )
                expect(after.results.map(({ toolCallId }) => toolCallId)).toEqual(
                  message.toolCalls?.map(({ toolCallId }) => toolCallId),
                )
            })
          await it.stop()
        },
      ),
      { numRuns: 40 },
    )
  })

  test('readers of the stream see the ids that the log has', async () => {
    const desk = solo('desk', {
      script: [
        calls('act', {}, { id: 'c0' }),
        [calls('act', { n: 1 }, { id: 'c0' }), calls('act', { n: 2 }, { id: 'c0' })],
        says('Done.'),
      ],
      tools: [tool('act')],
    })
    const it = await simulate({ agents: [desk] })
    const id = await it.create()
    const seen = new Set<string>()
    const reading = (async () => {
      for await (const { event } of it.runtime.subscribe(id)) {
        if (event.type === 'tool_call_delta') seen.add(event.toolCallId)
        if (event.type === 'session_end') return
      }
    })()
    await it.run(id, 'go')
    await reading
    expect([...seen].toSorted()).toEqual((await idsOf(it, id)).toSorted())
    expect(seen.size).toBe(3)
  })

  test('are unique also when a hook doubles a call: its answer is passed over', async () => {
    const hook = defineHook({
      id: 'doubles',
      hook: 'before_create_message',
      execute: (_, stored) => {
        const message = stored.message as AssistantMessage
        const [call] = message.toolCalls ?? []
        if (message.type !== 'assistant' || !call) return stored
        return { ...stored, message: { ...message, toolCalls: [call, call] } as never }
      },
    }) as HookDefinition
    let ran = 0
    const desk = solo('desk', {
      script: [calls('act', {}, { id: 'c0' }), says('Done.')],
      tools: [tool('act', () => ran++)],
      prompt: { hooks: [hook] },
    })
    const it = await simulate({ agents: [desk] })
    const { id, outcome } = await it.ask('go')
    expect({ outcome, ran }).toEqual({ outcome: 'completed', ran: 1 })
    expect(await idsOf(it, id)).toHaveLength(1)
    expect(await it.events(id, 'error_raised')).toMatchObject([{ code: 'HOOK_ANSWER' }])
  })
})

describe('steps that fail alike', () => {
  const failing = tool('act', () => {
    throw new Error('no such order')
  })

  test('eight failing calls of one message are one failing step, and the model sees the errors', async () => {
    const made = Array.from({ length: 8 }, (_, n) => calls('act', { n }))
    const desk = solo('desk', { script: [made, says('I see.')], tools: [failing] })
    const it = await simulate({ agents: [desk] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'I see.' })
    expect(
      linesOf(requestsOf(desk)[1])
        .at(-1)
        ?.match(/no such order/g),
    ).toHaveLength(8)
  })

  test('the session ends after as many failing steps as the limit says', async () => {
    const desk: AgentDefinition = solo('desk', {
      script: () => [calls('act', { n: 1 }), calls('act', { n: 2 })],
      tools: [failing],
    })
    const it = await simulate({ agents: [desk], limits: { sameErrors: 3 } })
    expect(await it.ask('go')).toMatchObject({ outcome: 'failed', reason: 'repeated_tool_error' })
    expect(requestsOf(desk)).toHaveLength(3)
  })

  test('a step in which one call succeeds ends the row', async () => {
    let step = 0
    const desk = solo('desk', {
      script: () =>
        ++step > 6 ? says('Done.') : step % 2 ? calls('act') : [calls('act'), calls('look')],
      tools: [failing, tool('look')],
    })
    const it = await simulate({ agents: [desk], limits: { sameErrors: 2 } })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed' })
  })
})
