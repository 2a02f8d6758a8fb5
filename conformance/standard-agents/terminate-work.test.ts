// Terminating a thread aborts whatever it or a descendant does (Standard Agents §7.13).
import { expect, test } from 'vitest'
import { agent } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  defineAgent,
  defineEffect,
  definePrompt,
  type PromptDefinition,
  type SideConfig,
} from '@skein/runtime'
import { solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

type Hold = (signal: AbortSignal) => Promise<never>
type Script = Parameters<typeof scripted>[0]

const asked = (script: Script, more: Partial<PromptDefinition> = {}): SideConfig => ({
  prompt: definePrompt({ name: 'worker_a', prompt: 'Work.', model: scripted(script), ...more }),
})

const never = asked(() => says('Continue.'), { name: 'worker_b' })
const holdModel = (hold: Hold) => scripted(({ signal }) => hold(signal))

/** The sides whose work is held until it is aborted. */
const kinds: Readonly<Record<string, (hold: Hold) => SideConfig>> = {
  'a model': (hold) => asked(({ signal }) => hold(signal)),
  'a tool that reads': (hold) =>
    asked([calls('slow')], { tools: [tool('slow', (_, __, signal) => hold(signal))] }),
  'a tool that writes': (hold) => {
    const options = { risk: 'write_low_risk', rollback: 'impossible' } as never
    return asked([calls('slow')], {
      tools: [tool('slow', (_, __, signal) => hold(signal), options)],
    })
  },
  'a prompt that is a tool': (hold) => {
    const judge = definePrompt({
      name: 'judge',
      prompt: 'Judge.',
      toolDescription: 'Judges.',
      model: holdModel(hold),
    })
    return asked([calls('judge', { message: 'it' })], { tools: [judge] })
  },
  'a summary': (hold) =>
    asked(({ system, signal }) => (system === undefined ? hold(signal) : says('never')), {
      compaction: { maxTokens: 10, keepMessages: 1 },
    }),
  'a first instruction': (hold) => {
    const early = defineAgent({
      name: 'early',
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: 'Comes first.',
      sideA: asked(() => says('never'), { name: 'early_a' }),
      sideB: { prompt: definePrompt({ ...(never.prompt as PromptDefinition), name: 'early_b' }) },
    })
    const immediate = { descriptionEnv: 'TASK' }
    return asked(({ signal }) => hold(signal), {
      env: { TASK: 'Look.' },
      tools: [{ name: early, immediate }],
    })
  },
  'a handler': (hold) => ({ handler: (_, { signal }) => hold(signal) }),
  'a strategy': (hold) => ({ agent: agent({ model: holdModel(hold) }) }),
  'an effect': () => asked(() => says('Done.')),
}

test.each(
  Object.keys(kinds).flatMap((kind) => [
    [kind, 'its thread'] as const,
    [kind, 'the parent'] as const,
  ]),
)('SA-84 %s is aborted when %s is terminated', async (kind, target) => {
  const started = latch<AbortSignal>()
  const hold: Hold = (signal) => {
    started.open(signal)
    return new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    )
  }
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Works.',
    maxSessionTurns: 1,
    sideA: kinds[kind]!(hold),
    sideB: never,
  })
  const boss = solo('boss', {
    script: [
      calls('subagent_create', { name: 'W', message: `work ${'hard '.repeat(20)}` }),
      says('Ok.'),
    ],
    tools: [{ name: worker, blocking: false, resumable: {} }],
  })
  const effect = defineEffect({ name: 'tick', execute: (_, __, { signal }) => hold(signal) })
  const it = await simulate({ agents: [boss], effects: [effect] })
  const { id } = await it.ask('hi')
  const { reference } = (await it.threads.children(id))[0]!
  if (kind === 'an effect') {
    await it.idle()
    await it.threads.effects.schedule(reference, 'tick', null, 0)
  }
  if (kind === 'a summary') {
    await it.idle()
    await it.send(reference, 'more')
  }
  const signal = await started.reached
  expect(signal.aborted).toBe(false)
  const before = (await it.threads.events(reference)).length
  await it.threads.terminate(target === 'the parent' ? id : reference)
  expect(signal.aborted).toBe(true)
  await it.idle()
  expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
  expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
  // What was cut off leaves no answer behind, and an effect has ended as it says.
  const after = (await it.threads.events(reference)).slice(before).map(({ event }) => event)
  const ends = after.filter(({ type }) => type === 'message_added' || type === 'effect_ended')
  expect(ends).toMatchObject(
    kind === 'an effect' ? [{ type: 'effect_ended', outcome: 'failed', error: 'aborted' }] : [],
  )
})
