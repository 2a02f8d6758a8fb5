/** Whatever a thread goes through, it comes to rest, loses nothing, and asks only what strict vendors accept. */
import fc from 'fast-check'
import type { ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { calls, reasons, says, vendorServer, type ScriptPart } from '@skein/ai/testing'
import {
  defineHook,
  defineModel,
  defineTool,
  memoryGovernanceKeys,
  type AgentDefinition,
  type PromptDefinition,
  type SideConfig,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { pair, solo, tool } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const vendors: Record<string, ModelReference> = {
  anthropic: anthropic('claude-x'),
  responses: openai('gpt-x'),
  chat: openai('gpt-x', { api: 'chat' }),
  google: google('gemini-x'),
  ollama: ollama('llama-x'),
}

const keys = await memoryGovernanceKeys()
const secretKey = new Uint8Array(32)

const toolNames = ['look', 'write', 'fail', 'hide', 'client', 'pay', 'no_such'] as const
const tools = [
  tool('look'),
  tool('write', (state) => void state.setValue('n', 1), { risk: 'write_low_risk' }),
  tool('fail', () => {
    throw new Error('no')
  }),
  tool('hide'),
  tool('end'),
  tool('hand'),
  tool('refund', undefined, { risk: 'write_low_risk' }),
  tool('pay', undefined, {
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'refund', payload: {} }),
  }),
  defineTool({ name: 'client', description: 'Asks.', args: z.looseObject({}), risk: 'read_only' }),
]
const hide = defineHook({
  id: 'hide',
  hook: 'after_tool_call_success',
  execute: (_, { toolName }, result) => (toolName === 'hide' ? null : result),
})

/** What a model does in one step. */
const move = fc.oneof(
  { weight: 4, arbitrary: fc.constant<ScriptPart[]>([says('Well then.')]) },
  fc.constant<ScriptPart[]>([says('')]),
  fc.constant<ScriptPart[]>([reasons('Hm.'), says('I see.')]),
  fc.constant<ScriptPart[]>([calls('end')]),
  fc.constant<ScriptPart[]>([says('Over to you.'), calls('hand', { say: 'Your turn.' })]),
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.boolean(), fc.array(fc.constantFrom(...toolNames), { minLength: 1, maxLength: 3 }))
      .map(([speaks, names]) => [
        ...(speaks ? [says('Let me see.')] : []),
        ...names.map((name) => calls(name)),
      ]),
  },
)

const act = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ do: 'send', role: 'user' } as const) },
  fc.constant({ do: 'send', role: 'assistant' } as const),
  fc.constantFrom({ do: 'stop' } as const, { do: 'resume' } as const, { do: 'restart' } as const),
  fc.record({ do: fc.constantFrom('edit', 'remove'), which: fc.nat() }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answer'), yes: fc.boolean() }) },
)

const world = fc.record({
  vendor: fc.constantFrom(...Object.keys(vendors)),
  isPair: fc.boolean(),
  side: fc.record({
    stopOnResponse: fc.boolean(),
    hasStopTool: fc.boolean(),
    endsBy: fc.constantFrom('stop', 'fail', 'none'),
  }),
  prompt: fc.record({
    includeChat: fc.boolean(),
    includePastTools: fc.boolean(),
    parallelToolCalls: fc.boolean(),
    compacts: fc.boolean(),
  }),
  moves: fc.array(move, { maxLength: 25 }),
  acts: fc.array(
    // Whether the thread is left in peace before the next one.
    act.chain((one) => fc.boolean().map((waits) => ({ ...one, waits }))),
    { minLength: 1, maxLength: 10 },
  ),
})

type World = typeof world extends fc.Arbitrary<infer T> ? T : never

function agentOf({ vendor, isPair, side, prompt, moves }: World): AgentDefinition {
  let next = 0
  let called = 0
  const server = vendorServer((request) => {
    if (request.tools.length === 0) return says('They spoke of this and that.') // a summary
    const parts = moves[next++] ?? [isPair ? calls('end') : says('Done.')]
    // Vendors never give an id twice; a script that counts what it is shown might.
    return parts.map((part) =>
      part.do === 'call' ? { ...part, toolCallId: `call_${++called}` } : part,
    )
  })
  const model = defineModel({
    name: 'vendor',
    model: vendors[vendor]!,
    config: { fetch: server.fetch, apiKey: 'k' },
  })
  const { includeChat, includePastTools, parallelToolCalls, compacts } = prompt
  const settings: Partial<PromptDefinition> = {
    model,
    includeChat,
    includePastTools,
    parallelToolCalls,
    hooks: [hide],
    compaction: { enabled: compacts, maxTokens: 60, keepMessages: 2 },
  }
  const config: Omit<SideConfig, 'prompt'> = {
    stopOnResponse: side.stopOnResponse,
    maxSteps: 12,
    ...(side.hasStopTool && { stopTool: 'hand', stopToolResponseProperty: 'say' }),
    ...(side.endsBy === 'stop' && { sessionStop: 'end' }),
    ...(side.endsBy === 'fail' && { sessionFail: 'end' }),
  }
  const setup = { ...config, script: [], tools, prompt: settings }
  return isPair ? pair('both', { a: setup, b: setup }, { maxSessionTurns: 6 }) : solo('one', setup)
}

async function perform(it: Simulation, id: string, one: World['acts'][number], sent: string[]) {
  switch (one.do) {
    case 'send':
      sent.push(await it.send(id, { text: `message ${sent.length}`, role: one.role }))
      return
    case 'stop':
      return it.threads.stop(id)
    case 'resume':
      return it.threads.resume(id)
    case 'edit':
    case 'remove': {
      const all = await it.threads.messages(id)
      const chosen = all[one.which % Math.max(all.length, 1)]
      if (!chosen || chosen.message.type === 'tool_result') return
      try {
        if (one.do === 'edit') await it.threads.updateMessage(id, chosen.id, 'edited')
        else await it.threads.deleteMessage(id, chosen.id)
        if (one.do === 'remove')
          sent.splice(0, sent.length, ...sent.filter((own) => own !== chosen.id))
      } catch (error) {
        expect(error).toMatchObject({ code: 'INPUT_INVALID' }) // its calls are open
      }
      return
    }
    case 'answer': {
      const [item] = await it.runtime.inbox.list()
      if (!item) return
      if (item.kind === 'input') {
        const answer = one.yes
          ? { type: 'result' as const, value: 1 }
          : { type: 'error' as const, message: 'no' }
        return it.runtime.inbox.answer(item, answer)
      }
      if (one.yes) return it.runtime.inbox.approve({ ...item, by: 'ann' })
      return it.runtime.inbox.deny({ ...item, by: 'ann', reason: 'no' })
    }
  }
}

test('SA-81 SA-82 SA-83 any conversation comes to rest, keeps every message once and in order, and is valid', async () => {
  const numRuns = process.env['SKEIN_DEEP'] ? 3_000 : 60
  await fc.assert(
    fc.asyncProperty(world, async (given) => {
      let it = await simulate({ agents: [agentOf(given)], keys, secretKey })
      const id = await it.create()
      const sent: string[] = []
      for (const one of given.acts) {
        if (one.do === 'restart') it = await it.restart()
        else await perform(it, id, one, sent)
        if (one.waits) await it.idle()
      }
      await it.idle()
      await check(it, id, sent)
      await it.stop()
    }),
    { numRuns },
  )
}, 300_000)

async function check(it: Simulation, id: string, sent: readonly string[]): Promise<void> {
  const ends = await it.events(id, 'session_end')
  expect(
    ends.filter(({ reason }) => reason === 'model_error' || reason === 'drain_failed'),
  ).toEqual([])
  expect(await it.events(id, 'error_raised')).toEqual([])
  const head = await it.threads.get(id)
  expect(head.lifecycle).not.toBe('running')
  expect(head.attempts).toBe(0)
  const stored = await it.threads.messages(id, { includeSilent: true })
  const known = new Set(sent)
  const waiting = await queued(it, id)
  if (head.lifecycle !== 'waiting' && head.lifecycle !== 'stopped') expect(waiting).toEqual([])
  expect([...stored.map((one) => one.id).filter((one) => known.has(one)), ...waiting]).toEqual(sent)
  for (const { logId } of await it.threads.logs(id)) await it.threads.log(id, logId)
  expect(await it.threads.document(id)).toMatchObject({ thread_id: id })
}

/** Messages that wait until an open call is answered, or a person continues after a stop. */
async function queued(it: Simulation, id: string): Promise<string[]> {
  const taken = new Set((await it.events(id, 'message_added')).map(({ queueId }) => queueId))
  const all = await it.events(id, 'message_queued')
  return all.map(({ queueId }) => queueId).filter((queueId) => !taken.has(queueId))
}
