// Nothing runs for ever, and nothing keeps the process from its other work.
import { describe, expect, test } from 'vitest'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'
import {
  defineHook,
  createRuntime,
  defineAgent,
  definePrompt,
  memoryStore,
  type AgentDefinition,
  type Commit,
  type Store,
} from '@skein/runtime'
import { linesOf, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

describe('handoffs', () => {
  /** Two agents that hand over to each other; `other` says who is next. */
  function ring(
    script: (name: string) => ScriptFunction,
    side: Partial<SideSetup> = {},
  ): readonly AgentDefinition[] {
    const make = (name: string, other: string): AgentDefinition =>
      defineAgent({
        name,
        exposeAsTool: true,
        toolDescription: name,
        sideA: {
          ...side,
          prompt: definePrompt({
            name: `${name}_a`,
            prompt: '',
            model: scripted(script(name)),
            tools: [other, tool(`look_${name}`)],
          }),
        },
      })
    return [make('ping', 'pong'), make('pong', 'ping')]
  }

  const requestCount = (agents: readonly AgentDefinition[]): number =>
    agents.reduce((sum, agent) => sum + requestsOf(agent).length, 0)

  test('end the session after `maxHandoffs`, until a person speaks', async () => {
    const agents = ring((name) => () => calls(name === 'ping' ? 'pong' : 'ping'))
    const it = await simulate({ agents })
    const { id, ...first } = await it.ask('go')
    expect(first).toMatchObject({ outcome: 'failed', reason: 'max_handoffs' })
    expect(await it.events(id, 'agent_handoff')).toHaveLength(10)
    expect(requestCount(agents)).toBe(11)
    // A person speaks, so the thread may be handed over again as often.
    expect(await it.run(id, 'again')).toMatchObject({ reason: 'max_handoffs' })
    expect(await it.events(id, 'agent_handoff')).toHaveLength(20)
  })

  test('a person who speaks in between starts the count again, a child or the thread itself does not', async () => {
    for (const isPerson of [true, false]) {
      let steps = 0
      const agents = ring((name) => async () => {
        steps++
        if (steps === 4 && isPerson) await it.send(id, 'I am still here')
        if (steps === 4 && !isPerson)
          await it.runtime.withState(id, (state) => void state.queueMessage({ content: 'me' }))
        return calls(name === 'ping' ? 'pong' : 'ping')
      })
      const it = await simulate({ agents, limits: { maxHandoffs: 5 } })
      const id = await it.create()
      expect(await it.run(id, 'go')).toMatchObject({ reason: 'max_handoffs' })
      expect(await it.events(id, 'agent_handoff')).toHaveLength(isPerson ? 9 : 5)
    }
  })

  test('steps of an agent count over its sessions', async () => {
    const agents = ring(
      (name) => (request) =>
        request.messages.at(-1)?.type === 'tool_result' &&
        JSON.stringify(request.messages.at(-1)).includes(`look_${name}`)
          ? calls(name === 'ping' ? 'pong' : 'ping')
          : calls(`look_${name}`),
      { maxSteps: 3 },
    )
    const it = await simulate({ agents })
    const { id, ...result } = await it.ask('go')
    expect(result).toMatchObject({ outcome: 'failed', reason: 'max_side_steps' })
    expect(requestCount(agents)).toBeLessThanOrEqual(6)
    expect((await it.events(id, 'agent_handoff')).length).toBeLessThan(4)
  })

  test('a session that did not begin with a handoff counts from zero', async () => {
    const agents = ring((name) => (request) => {
      const isFirst = !linesOf(request).some((line) => line.includes('[pong'))
      return name === 'ping' && isFirst ? calls('pong') : says('Here.')
    })
    const it = await simulate({ agents, limits: { maxHandoffs: 1 } })
    const { id, outcome } = await it.ask('go')
    expect(outcome).toBe('completed')
    expect(await it.run(id, 'more')).toMatchObject({ outcome: 'completed' })
  })
})

describe('progress', () => {
  /** A store that changes what the runtime commits, as a defect of the runtime would. */
  function spoiling(spoil: (commit: Commit) => void): Store {
    const store = memoryStore()
    const { commit } = store
    store.commit = (wanted) => {
      spoil(wanted)
      return commit.call(store, wanted)
    }
    return store
  }

  test('an action that changes nothing fails the thread instead of being repeated for ever', async () => {
    const store = spoiling(({ point, threads }) => {
      if (point !== 'answer') return
      for (const event of threads[0]?.append ?? []) {
        if (event.type !== 'message_added') continue
        const { message } = event as { message: { toolCalls?: { toolCallId: string }[] } }
        const toolCalls = message.toolCalls?.map((call) => ({ ...call, toolCallId: 'same' }))
        if (toolCalls) Object.assign(event, { message: { ...message, toolCalls } })
      }
    })
    const script = [[calls('look'), calls('look')], says('Better.')]
    // With this hook an answer is committed by itself, and folded as the store was given it.
    const hooks = [defineHook({ id: 'see', hook: 'after_create_message', execute: () => {} })]
    const desk = solo('desk', { script, tools: [tool('look')] }, { hooks })
    const it = await simulate({ agents: [desk], store })
    const { id, ...result } = await it.ask('go')
    expect(result).toMatchObject({ outcome: 'failed', reason: 'no_progress' })
    const [error] = await it.events(id, 'error_raised')
    expect(error).toMatchObject({ code: 'NO_PROGRESS' })
    expect(error?.message).toMatch(/"run_calls .*" changed nothing at event \d+/)
    expect((await it.threads.get(id)).lifecycle).toBe('failed')
    // The thread is not lost: the next message starts another session.
    expect(await it.run(id, 'and now?')).toMatchObject({ outcome: 'completed', text: 'Better.' })
  })
})

test(
  'timers fire while a thread works without ever waiting for anything',
  { timeout: 60_000 },
  async () => {
    let isOver = false
    let signal: AbortSignal | undefined
    let steps = 0
    const hasRung = (): boolean => isOver && signal?.aborted === true
    const desk = solo('desk', {
      maxSteps: 100_000,
      script: () => (hasRung() || ++steps >= 4_000 ? says('Done.') : calls('look')),
      tools: [tool('look')],
    })
    const runtime = await createRuntime({ agents: [desk], store: memoryStore() })
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'desk' })
    setTimeout(() => (isOver = true), 50)
    signal = AbortSignal.timeout(50)
    expect(await runtime.threads.run(id, 'go')).toMatchObject({ outcome: 'completed' })
    expect(steps).toBeLessThan(4_000)
    expect(hasRung()).toBe(true)
    await runtime.stop()
  },
)

describe('a message that is edited while the model answers', () => {
  const setUp = async (change: 'update' | 'remove' | 'other') => {
    const asked = latch()
    const goOn = latch()
    let requests = 0
    const desk = solo('desk', {
      script: async () => {
        if (++requests > 1) return says(`Answer ${requests}.`)
        asked.open()
        await goOn.reached
        return says('Answer to the old question.')
      },
    })
    const it = await simulate({ agents: [desk] })
    const id = await it.create()
    const first = await it.send(id, 'old question')
    await asked.reached
    if (change === 'update') await it.threads.updateMessage(id, first, 'new question')
    if (change === 'remove') await it.threads.deleteMessage(id, first)
    if (change === 'other') await it.threads.values.set(id, 'k', 1)
    goOn.open()
    await it.idle()
    return { it, id, desk }
  }

  test('cuts the step, which runs again with the new text', async () => {
    const { it, id, desk } = await setUp('update')
    expect(requestsOf(desk).map((request) => linesOf(request).at(-1))).toEqual([
      'user: old question',
      'user: new question',
    ])
    const said = (await it.threads.messages(id)).map(({ message }) =>
      message.type === 'tool_result' ? '' : message.text,
    )
    expect(said).toEqual(['new question', 'Answer 2.'])
    expect(await it.events(id, 'step_reset')).toMatchObject([{ reason: 'edited' }])
    expect(await it.events(id, 'model_answered')).toHaveLength(2)
  })

  test('cuts it also when the message is removed', async () => {
    const { it, id, desk } = await setUp('remove')
    expect(JSON.stringify(requestsOf(desk).at(-1)?.messages)).not.toContain('old question')
    expect(await it.events(id, 'step_reset')).toHaveLength(1)
    expect(await it.threads.settled(id)).toMatchObject({ text: 'Answer 2.' })
  })

  test('other changes of the thread cut nothing', async () => {
    const { it, id, desk } = await setUp('other')
    expect(requestsOf(desk)).toHaveLength(1)
    expect(await it.events(id, 'step_reset')).toEqual([])
    expect(await it.threads.settled(id)).toMatchObject({ text: 'Answer to the old question.' })
  })

  test('a call that runs is not cut', async () => {
    const started = latch()
    const goOn = latch()
    const slow = tool('slow', async (_, __, signal) => {
      started.open()
      await goOn.reached
      return signal.aborted ? 'cut' : 'whole'
    })
    const desk = solo('desk', { script: [calls('slow'), says('Done.')], tools: [slow] })
    const it = await simulate({ agents: [desk] })
    const id = await it.create()
    const first = await it.send(id, 'old question')
    await started.reached
    await it.threads.updateMessage(id, first, 'new question')
    goOn.open()
    await it.idle()
    expect(linesOf(requestsOf(desk)[1])).toEqual([
      'user: new question',
      'assistant:  [slow({})]',
      'tool_result: slow = "whole"',
    ])
    expect(await it.events(id, 'step_reset')).toEqual([])
  })
})
