import { describe, expect, test } from 'vitest'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import type { ScriptFunction, ScriptStep } from '@skein/ai/testing'
import { asSubagent } from '../definitions/as-subagent.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import type { AgentDefinition } from '../definitions/agent-definition.ts'
import type { PromptDefinition, SubagentToolConfig } from '../definitions/prompt-definition.ts'
import { createRuntime, type EmbeddedRuntime } from '../runtime.ts'
import type { RuntimeOptions } from '../runtime-options.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { foldKernel } from '../state/fold.ts'
import { childRegistry } from '../thread/facade.ts'

type Script = readonly ScriptStep[] | ScriptFunction

function agentOf(
  name: string,
  script: Script,
  prompt: Partial<Omit<PromptDefinition, 'kind'>> = {},
): AgentDefinition {
  const model = scripted(script, { modelId: name })
  return defineAgent({
    name,
    description: `The agent ${name}.`,
    sideA: { prompt: definePrompt({ name, prompt: `You are ${name}.`, model, ...prompt }) },
  })
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: () => 'paid',
})

async function started(
  agents: readonly AgentDefinition[],
  options: Partial<RuntimeOptions> = {},
): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({ agents, ...options })
  await runtime.start()
  return runtime
}

async function eventsOf(runtime: EmbeddedRuntime, id: string): Promise<readonly RuntimeEvent[]> {
  return (await runtime.threads.events(id)).map(({ event }) => event)
}

/** What the log of a thread says about the status of its children, in order. */
async function statuses(runtime: EmbeddedRuntime, id: string): Promise<string[]> {
  const events = await eventsOf(runtime, id)
  return events.flatMap((event) => (event.type === 'subagent_updated' ? [event.status] : []))
}

const kept = (child: AgentDefinition): SubagentToolConfig => ({
  name: child,
  blocking: false,
  resumable: { maxInstances: 1 },
})

/** A parent that starts one child, which asks a person before it pays. */
function payers(script: Script = [calls('pay', {}), says('Paid.'), says('Again.'), says('More.')]) {
  const payer = asSubagent(agentOf('payer', script, { tools: [pay] }))
  const start = calls('subagent_create', { agent: 'payer', name: 'p', message: 'Pay.' })
  const boss = agentOf(
    'boss',
    ({ messages }) => {
      const isAsked = messages.some(({ type }) => type === 'tool_result')
      const last = messages.findLast(({ type, text }) => type === 'user' && !text.startsWith('['))
      const found = /^tell (\S+)$/.exec(last?.text ?? '')
      const isTold = JSON.stringify(messages.at(-1)).includes('was sent to subagent')
      if (found && !isTold)
        return calls('subagent_message', { reference: found[1]!, message: 'Hurry.' })
      return isAsked ? says('Ok.') : start
    },
    { tools: [kept(payer)] },
  )
  return { boss, payer }
}

describe('the list of children says what they do', () => {
  test('awaiting_human while a child waits for a person, running again when the person has decided', async () => {
    for (const decision of ['approve', 'deny'] as const) {
      const { boss } = payers()
      const runtime = await started([boss])
      const { id } = await runtime.threads.create({ agent: 'boss' })
      await runtime.threads.run(id, 'Go')
      await runtime.idle()
      const [child] = await runtime.threads.children(id)
      expect(child!.status).toBe('awaiting_human')
      await runtime.threads.run(id, 'How is it?')
      const [item] = await runtime.inbox.list({})
      await runtime.inbox[decision]({ ...item!, by: 'pat', reason: 'because' })
      await runtime.idle()
      expect(await statuses(runtime, id)).toEqual(['awaiting_human', 'running', 'idle'])
      const notes = (await runtime.threads.messages(id, { includeSilent: true })).flatMap(
        ({ message }) => (message.text.startsWith('[runtime] Subagents') ? [message.text] : []),
      )
      const line = (status: string): string =>
        `[runtime] Subagents of this thread:\n- payer "p" (reference: ${child!.reference}): ${status}`
      expect(notes).toEqual([line('running'), line('awaiting_human'), line('idle')])
      await runtime.stop()
    }
  })

  test('a child that waits for its own child, which waits for a person, is not running', async () => {
    for (const decision of ['approve', 'deny'] as const) {
      const payer = asSubagent(
        agentOf('payer', [calls('pay', {}), says('Paid.')], { tools: [pay] }),
      )
      const clerk = asSubagent(
        agentOf('clerk', [calls('payer', { message: 'Pay.' }), says('It is paid.')], {
          tools: [payer],
        }),
      )
      const manager = asSubagent(
        agentOf('manager', [calls('clerk', { message: 'Pay.' }), says('All is paid.')], {
          tools: [clerk],
        }),
      )
      const start = calls('subagent_create', { agent: 'manager', name: 'm', message: 'Pay.' })
      const boss = agentOf(
        'boss',
        ({ messages }) =>
          messages.some(({ type }) => type === 'tool_result') ? says('Ok.') : start,
        { tools: [kept(manager)] },
      )
      const runtime = await started([boss])
      const { id } = await runtime.threads.create({ agent: 'boss' })
      await runtime.threads.run(id, 'Go')
      await runtime.idle()
      const below = async (thread: string) => (await runtime.threads.children(thread))[0]!
      const lines: string[] = []
      for (let at = id; lines.length < 3;) {
        const child = await below(at)
        lines.push(child.status)
        at = child.reference
      }
      expect(lines).toEqual(['awaiting_human', 'awaiting_human', 'awaiting_human'])
      const [item] = await runtime.inbox.list({})
      await runtime.inbox[decision]({ ...item!, by: 'pat', reason: 'because' })
      await runtime.idle()
      expect(await statuses(runtime, id)).toEqual(['awaiting_human', 'running', 'idle'])
      const events = await eventsOf(runtime, (await below(id)).reference)
      expect(events.filter(({ type }) => type === 'subagent_updated')).toMatchObject([
        { status: 'awaiting_human' },
        { status: 'running' },
      ])
      await runtime.stop()
    }
  })

  test('a message of the parent makes it running, and the child says again that it waits', async () => {
    const { boss } = payers()
    const runtime = await started([boss])
    const { id } = await runtime.threads.create({ agent: 'boss' })
    await runtime.threads.run(id, 'Go')
    await runtime.idle()
    const [{ reference } = { reference: '' }] = await runtime.threads.children(id)
    await runtime.threads.run(id, `tell ${reference}`)
    await runtime.idle()
    expect(await statuses(runtime, id)).toEqual(['awaiting_human', 'running', 'awaiting_human'])
    await runtime.stop()
  })

  test('a message that somebody else sends to an idle child makes it running', async () => {
    const { boss } = payers([says('Paid.'), says('Again.')])
    const runtime = await started([boss])
    const { id } = await runtime.threads.create({ agent: 'boss' })
    await runtime.threads.run(id, 'Go')
    await runtime.idle()
    const [{ reference } = { reference: '' }] = await runtime.threads.children(id)
    expect(await statuses(runtime, id)).toEqual(['idle'])
    await runtime.threads.run(reference, 'And now?')
    await runtime.idle()
    expect(await statuses(runtime, id)).toEqual(['idle', 'running', 'idle'])
    await runtime.stop()
  })

  test('a stop, a cut and a restart of the process leave no child that waits for nobody', async () => {
    for (const way of ['stop', 'cut', 'process'] as const) {
      const { boss } = payers()
      const store = memoryStore()
      store.close = async () => {} // it outlives its first runtime
      let runtime = await started([boss], { store })
      const { id } = await runtime.threads.create({ agent: 'boss' })
      await runtime.threads.run(id, 'Go')
      await runtime.idle()
      const [{ reference } = { reference: '' }] = await runtime.threads.children(id)
      if (way === 'stop') await runtime.threads.stop(reference)
      if (way === 'cut') await runtime.threads.send(reference, { text: 'Stop it.', ifBusy: 'cut' })
      if (way === 'process') {
        await runtime.stop()
        runtime = await started([boss], { store })
        await runtime.idle()
        expect(await statuses(runtime, id)).toEqual(['awaiting_human'])
        const [item] = await runtime.inbox.list({})
        await runtime.inbox.approve({ ...item!, by: 'pat' })
      }
      await runtime.idle()
      const [child] = await runtime.threads.children(id)
      expect([way, child!.status]).toEqual([way, 'idle'])
      await runtime.stop()
    }
  })
})

test('SA-86 whatever comes later, a child that was terminated stays so, and a disposable one that has reported too', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const statusAfter = (isResumable: boolean, outcome: 'completed' | 'terminated') => {
    const reference = 'r'
    const made = { reference, name: 'helper', relation: 'helper', isResumable, isBlocking: false }
    const events: RuntimeEvent[] = [
      { type: 'subagent_created', at, parentCommunication: 'implicit', ...made },
      { type: 'subagent_ended', at, reference, outcome },
      { type: 'subagent_updated', at, reference, status: 'running', statusText: 'late' },
    ]
    const state = foldKernel(events.map((event, index) => ({ seq: index + 1, event })))
    return childRegistry(state, { includesEnded: true })[0]!.status
  }
  expect(statusAfter(true, 'terminated')).toBe('terminated')
  expect(statusAfter(false, 'terminated')).toBe('terminated')
  expect(statusAfter(false, 'completed')).toBe('completed')
  expect(statusAfter(true, 'completed')).toBe('late')
})

describe('asSubagent', () => {
  test('makes a child of an ordinary agent, whose answer is the result', async () => {
    const researcher = agentOf('researcher', [says('42 letters.')])
    const desk = agentOf('desk', [calls('researcher', { message: 'How many?' }), says('Done.')], {
      tools: [asSubagent(researcher)],
    })
    const runtime = await started([desk])
    const { id } = await runtime.threads.create({ agent: 'desk' })
    expect(await runtime.threads.run(id, 'Ask')).toMatchObject({ outcome: 'completed' })
    const ends = (await eventsOf(runtime, id)).filter(({ type }) => type === 'tool_execution_end')
    expect(ends).toMatchObject([{ outcome: 'success', result: '42 letters.' }])
    await runtime.stop()
  })

  test('keeps tools, budget and description; both can be registered under two names', async () => {
    const budget = { maxTokens: 1000, maxCostUsd: 1 }
    const researcher = defineAgent({ ...agentOf('researcher', [], { tools: [pay] }), budget })
    const made = asSubagent(researcher, { name: 'helper', toolDescription: 'Helps.' })
    expect(made).toMatchObject({
      name: 'helper',
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: 'Helps.',
      description: 'The agent researcher.',
      budget,
    })
    const priced = { prices: () => ({ input: 1, output: 1 }) }
    const desk = agentOf('desk', [], { tools: [made] })
    const runtime = await started([desk, researcher], priced)
    expect([...runtime.registry.agents.keys()].toSorted()).toEqual(['desk', 'helper', 'researcher'])
    await runtime.stop()
  })

  test('a bare ai_human agent as a child is still refused, and a subagent is none again', async () => {
    const researcher = agentOf('researcher', [])
    const desk = agentOf('desk', [], { tools: [{ name: researcher, blocking: true }] })
    await expect(createRuntime({ agents: [desk] })).rejects.toThrow('dual_ai')
    expect(() => asSubagent(asSubagent(researcher))).toThrow('is a subagent already')
  })
})

describe('the request that writes the first instruction', () => {
  const hinted = (script: Script): AgentDefinition => {
    const helper = asSubagent(agentOf('helper', [says('Done.')]))
    const immediate = { descriptionEnv: 'TASK' }
    return agentOf('boss', script, { tools: [{ name: helper, blocking: false, immediate }] })
  }
  const env = { TASK: 'Count the ships' }

  test('is in the log of requests with its answer', async () => {
    const runtime = await started([hinted([says('Count!'), says('Hello.'), says('Ok.')])])
    const { id } = await runtime.threads.create({ agent: 'boss', env })
    await runtime.idle()
    const [log] = await runtime.threads.logs(id)
    const detail = await runtime.threads.log(id, log!.logId)
    expect(detail.system).toContain('You write the first instruction for a subagent.')
    expect(JSON.stringify(detail.messages)).toContain('Count the ships')
    expect(detail).toMatchObject({ model: 'boss', tools: [], finishReason: 'end_turn' })
    await runtime.stop()
  })

  test('its failure is in the log of requests and an error of the thread', async () => {
    const runtime = await started([hinted([fails('no luck'), says('Hello.'), says('Ok.')])])
    const { id } = await runtime.threads.create({ agent: 'boss', env })
    await runtime.idle()
    const [log] = await runtime.threads.logs(id)
    expect(log!.error?.message).toContain('no luck')
    const raised = (await eventsOf(runtime, id)).filter(({ type }) => type === 'error_raised')
    expect(raised).toMatchObject([
      { code: 'BOOTSTRAP_FAILED', message: expect.stringContaining('no luck') as string },
    ])
    const [{ reference } = { reference: '' }] = (await eventsOf(runtime, id)).flatMap((event) =>
      event.type === 'subagent_created' ? [event] : [],
    )
    const [first] = await runtime.threads.messages(reference)
    expect(first!.message.text).toBe('Count the ships')
    await runtime.stop()
  })
})

describe('a result of a child that is too large for a request', () => {
  const large = `${'é'.repeat(40_000)} end`
  const small = { limits: { maxToolResultBytes: 1000 } }

  test('reaches the model of a waiting parent as its beginning and end; a file of the parent has all of it', async () => {
    const child = asSubagent(agentOf('teller', [says(large)]))
    const boss = agentOf('boss', [calls('teller', { message: 'go' }), says('Ok.')], {
      tools: [{ name: child, blocking: true }],
    })
    const runtime = await started([boss], small)
    const { id } = await runtime.threads.create({ agent: 'boss' })
    await runtime.threads.run(id, 'Go')
    const asked = await runtime.threads.log(id, (await runtime.threads.logs(id)).at(-1)!.logId)
    const text = JSON.stringify(asked.messages)
    expect(text.length).toBeLessThan(3000)
    const path = /the file (\S+) of this thread/.exec(text)?.[1]
    const file = await runtime.threads.files.read(id, path!)
    expect(Buffer.from(file!.bytes).toString()).toBe(large)
    await runtime.stop()
  })

  test('reaches a parent that does not wait in the same way', async () => {
    const child = asSubagent(agentOf('teller', [says(large)]))
    const boss = agentOf(
      'boss',
      ({ messages }) =>
        messages.some(({ type }) => type === 'tool_result')
          ? says('Ok.')
          : calls('teller', { message: 'go' }),
      { tools: [{ name: child, blocking: false }] },
    )
    const runtime = await started([boss], small)
    const { id } = await runtime.threads.create({ agent: 'boss' })
    await runtime.threads.run(id, 'Go')
    await runtime.idle()
    const told = (await runtime.threads.messages(id, { includeSilent: true })).find(({ message }) =>
      message.text.includes('has returned the following result'),
    )
    expect(Buffer.byteLength(told!.message.text)).toBeLessThan(1300)
    expect(told!.message.text).toContain('of this thread.]')
    await runtime.stop()
  })
})

test('the times of events never go back in a log', async () => {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => (now += 1) }
  const child = asSubagent(agentOf('teller', [says('Done.')]))
  const tool = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    execute: () => 'seen',
  })
  const boss = agentOf(
    'boss',
    [calls('look', {}), calls('teller', { message: 'go' }), says('Ok.')],
    {
      tools: [tool, { name: child, blocking: true }],
    },
  )
  const needs = [{ type: 'tool_result', source: 'look' }] as const
  const agents = [{ ...boss, taskClass: { name: 'seen', needs, verifiers: [] } }]
  const runtime = await started(agents, { clock, store: memoryStore({ clock }) })
  const { id } = await runtime.threads.create({ agent: 'boss' })
  await runtime.threads.run(id, 'Go')
  const times = (await eventsOf(runtime, id)).map(({ at }) => at)
  expect(times).toEqual(times.toSorted())
  await runtime.stop()
})
