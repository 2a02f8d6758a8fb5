import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, fails, says, scripted, stops } from '@skein/ai/testing'
import { createRegistry, createRuntime, memoryStore, type Commit, type Store } from '../index.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { defineModel, definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import type {
  PromptDefinition,
  PromptTool,
  SubpromptConfig,
} from '../definitions/prompt-definition.ts'
import type { EmbeddedRuntime } from '../runtime.ts'
import type { RuntimeOptions } from '../runtime-options.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

const usage = { usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 } }
const Mood = z.object({ mood: z.enum(['good', 'bad']), why: z.string() })

/** A prompt that tells the mood of a text, asked by a model of its own. */
function moodPrompt(
  model: PromptDefinition['model'],
  rest: Partial<PromptDefinition> = {},
): PromptDefinition {
  return definePrompt({
    name: 'mood',
    prompt: 'Tell the mood.',
    toolDescription: 'Tells the mood of a text.',
    requiredSchema: z.object({ text: z.string() }),
    output: Mood,
    model,
    ...rest,
  } as Parameters<typeof definePrompt>[0])
}

function deskWith(tool: PromptTool) {
  const model = scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'tool_result')
      return [calls('mood', { text: 'Hurray!' }, { id: 'c1' }), stops(undefined, usage)]
    return [says(JSON.stringify(last.results[0])), stops(undefined, usage)]
  })
  const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model, tools: [tool] })
  return { model, agent: defineAgent({ name: 'desk', sideA: { prompt } }) }
}

async function run(tool: PromptTool, options: Partial<RuntimeOptions> = {}) {
  const { agent, model } = deskWith(tool)
  const runtime = await createRuntime({ agents: [agent], ...options })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.files.write(id, '/a.txt', new TextEncoder().encode('a'))
  const { text } = await runtime.threads.run(id, 'How is she?')
  const told = JSON.parse(text) as { result: unknown; isError?: boolean }
  return { runtime, id, model, told }
}

const good = () => [says('{"mood":"good","why":"Hurray"}'), stops(undefined, usage)]

describe('a prompt as a tool', () => {
  test('is one request in the same thread, with its own model, text and schema', async () => {
    const asked = scripted(good)
    const { runtime, id, model, told } = await run(moodPrompt(asked))
    expect(told).toMatchObject({ result: { mood: 'good', why: 'Hurray' } })
    expect(asked.requests).toHaveLength(1)
    expect(asked.requests[0]).toMatchObject({ system: 'Tell the mood.', tools: [] })
    expect(asked.requests[0]?.structure).toMatchObject({ required: ['mood', 'why'] })
    const [message, ...rest] = asked.requests[0]!.messages
    expect([message?.text, rest]).toEqual(['{"text":"Hurray!"}', []])
    expect(model.requests[0]?.tools).toMatchObject([
      { name: 'mood', parameters: { required: ['text'] } },
    ])
    expect(await runtime.threads.list({})).toHaveLength(1)
    const sessions = (await runtime.threads.events(id)).filter(
      ({ event }) => event.type === 'session_start',
    )
    expect(sessions).toHaveLength(1)
  })

  test('is in the log of requests, with its call, and its cost is counted once everywhere', async () => {
    const asked = defineModel({
      name: 'cheap',
      model: scripted(good),
      inputPrice: 1_000_000,
      outputPrice: 0,
    })
    const { runtime, id } = await run(moodPrompt(asked))
    const logs = await runtime.threads.logs(id)
    expect(logs.map(({ prompt, toolCallId }) => [prompt, toolCallId])).toEqual([
      ['desk', undefined],
      ['mood', 'c1'],
      ['desk', undefined],
    ])
    const detail = await runtime.threads.log(id, logs[1]!.logId)
    expect(detail).toMatchObject({
      system: 'Tell the mood.',
      costUsd: 100,
      messages: [{ type: 'user' }],
      usage: { input_tokens: 100 },
    })
    // The request after it still repeats the one before it.
    const last = await runtime.threads.log(id, logs[2]!.logId)
    expect(last.messages).toHaveLength(3)
    const head = await runtime.threads.get(id)
    expect(head.tokens).toBe(330)
    const cost = await runtime.threads.cost(id)
    expect(cost.tokens).toBe(330)
    expect(Object.values(cost.byModel).map((one) => one.calls)).toEqual([3])
  })

  test('sees the conversation only if it asks for it, and the files that it is handed', async () => {
    const asked = scripted(() => says('fine'))
    const plain = { output: undefined, requiredSchema: undefined }
    const config: SubpromptConfig = {
      name: moodPrompt(asked, { ...plain, includeChat: true }),
      initUserMessageProperty: 'text',
    }
    const { told } = await run(config)
    expect(told.result).toBe('fine')
    expect(asked.requests[0]!.messages.map(({ type, text }) => [type, text])).toEqual([
      ['user', 'How is she?'],
      ['user', 'Hurray!'],
    ])
    const files: SubpromptConfig = {
      name: moodPrompt(asked, { ...plain, requiredSchema: z.object({ text: z.string() }) }),
      initAttachmentsProperty: 'text',
    }
    expect((await run(files)).told).toMatchObject({ isError: true })
  })

  test('asks the fallback when the model fails; what failed is told, unless it is not to be', async () => {
    const broken = scripted([
      fails({ code: 'INVALID_REQUEST', message: 'canary: no such model' }),
      fails({ code: 'INVALID_REQUEST', message: 'canary: no such model' }),
      fails({ code: 'INVALID_REQUEST', message: 'canary: no such model' }),
    ])
    const both = defineModel({ name: 'm', model: broken, fallbacks: [scripted(good)] })
    const { told, runtime, id } = await run(moodPrompt(both))
    expect(told.result).toEqual({ mood: 'good', why: 'Hurray' })
    const logs = (await runtime.threads.logs(id)).filter(({ prompt }) => prompt === 'mood')
    expect(logs.map(({ error }) => error?.code)).toEqual(['INVALID_REQUEST', undefined])
    const failed = await run(moodPrompt(broken))
    expect(failed.told).toMatchObject({ isError: true, result: expect.stringContaining('canary') })
    const hidden = await run({ name: moodPrompt(broken), includeErrors: false })
    expect(JSON.stringify(hidden.told)).not.toContain('canary')
    expect(hidden.told.isError).toBe(true)
    const quiet = await run({ name: moodPrompt(scripted(good)), includeTextResponse: false })
    expect(quiet.told).toMatchObject({ result: 'It was answered.' })
  })

  test('an answer that does not fit the schema, and arguments that do not, are errors', async () => {
    const wrong = await run(moodPrompt(scripted(() => says('{"mood":"odd","why":""}'))))
    expect(wrong.told).toMatchObject({ isError: true, result: expect.stringContaining('"mood"') })
    const asked = scripted(good)
    const odd = moodPrompt(asked, { requiredSchema: z.object({ text: z.number() }) })
    expect((await run(odd)).told).toMatchObject({ isError: true })
    expect(asked.requests).toEqual([])
  })

  test('is not asked when the budget is used up', async () => {
    const asked = scripted(good)
    const { agent } = deskWith(moodPrompt(asked))
    const runtime = await createRuntime({
      agents: [{ ...agent, budget: { maxTokens: 100 } }],
    })
    opened.push(runtime)
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.run(id, 'Go.')
    expect(asked.requests).toEqual([])
    expect(JSON.stringify(await runtime.threads.events(id))).toContain('was not asked: maxTokens')
  })

  test('by name, by object and with settings; what cannot be a tool is a problem at load', () => {
    const model = scripted([])
    const agentOf = (tools: readonly PromptTool[], rest: readonly PromptDefinition[] = []) => {
      const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model, tools })
      const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
      return () => createRegistry({ agents, prompts: [...rest] })
    }
    const mood = moodPrompt(model)
    for (const tool of [mood, { name: mood }, 'mood', { name: 'mood', includeErrors: true }])
      expect(agentOf([tool], [mood])().agent('desk').a.prompt.tools).toMatchObject([
        { kind: 'prompt', name: 'mood', prompt: { name: 'mood' } },
      ])
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      risk: 'read_only',
      execute: () => 'x',
    })
    expect(agentOf([moodPrompt(model, { toolDescription: undefined })])).toThrow(
      'the prompt "mood" is used as a tool, but lacks toolDescription',
    )
    expect(agentOf([moodPrompt(model, { tools: [look] })])).toThrow('has tools itself')
    expect(agentOf([mood, { name: mood }])).toThrow('two tools of this prompt are called "mood"')
    expect(agentOf([{ name: mood, blocking: true } as never])).toThrow('blocking')
  })
})

/** A store whose process dies at its n-th commit. */
function dying(store: Store, at: number, isWritten: boolean) {
  let commits = 0
  let isDead = false
  let die = (_point: string): void => {}
  const died = new Promise<string>((resolve) => (die = resolve))
  const never = new Promise<never>(() => {})
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        if (isDead) return never
        if (name !== 'commit' || ++commits !== at) return Reflect.apply(member, target, args)
        const commit = args[0] as Commit
        isDead = true
        if (isWritten) await store.commit(commit)
        die(commit.point)
        return never
      }
    },
  })
  return { store: proxy, died }
}

test('a crash at every commit, before and after it: one answer, asked again only if it was lost', async () => {
  const seen: string[] = []
  for (let at = 1, isOver = false; !isOver; at++)
    for (const isWritten of [false, true]) {
      const store = memoryStore()
      const asked = scripted(good)
      const { agent, model } = deskWith(moodPrompt(asked))
      const setup = await createRuntime({ agents: [agent], store })
      const { id } = await setup.threads.create({ agent: 'desk' })
      await setup.threads.send(id, 'How is she?')
      const world = dying(store, at, isWritten)
      const mortal = await createRuntime({ agents: [agent], store: world.store, owner: 'mortal' })
      await mortal.start()
      const point = await Promise.race([world.died, mortal.idle()])
      isOver = point === undefined
      if (isOver) break
      seen.push(String(point))
      await store.release('mortal')
      const before = asked.requests.length
      const next = await createRuntime({ agents: [agent], store, owner: 'next' })
      await next.start()
      await next.idle()
      const log = (await store.events(id)).map(({ event }) => event)
      const place = `${String(point)} ${isWritten ? 'written' : 'lost'}`
      const answers = log.filter((one) => one.type === 'model_answered' && one.toolCallId)
      const ends = log.filter((one) => one.type === 'tool_execution_end')
      expect([answers.length, ends.length], place).toEqual([1, 1])
      expect(log.some((one) => one.type === 'session_end' && one.outcome === 'completed')).toBe(
        true,
      )
      // Once its end is in the log, it is not asked again.
      const isStored = before === 1 && isWritten && String(point).includes('call_end')
      const isLater = before === 1 && seen.filter((one) => one.includes('call_end')).length > 2
      if (isStored || isLater) expect(asked.requests.length, place).toBe(1)
      expect(asked.requests.length, place).toBeLessThanOrEqual(2)
      const { tokens } = await next.threads.get(id)
      const counted = log.flatMap((one) => (one.type === 'model_answered' ? [one.usage] : []))
      expect(tokens, place).toBe(counted.length * 110)
      expect(model.requests.length).toBeLessThanOrEqual(3)
      await next.stop()
    }
  expect(seen.some((point) => point.includes('call_start'))).toBe(true)
  expect(seen.some((point) => point.includes('call_end'))).toBe(true)
})
