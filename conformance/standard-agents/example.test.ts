import { describe, expect, test } from 'vitest'
import { calls, says, scripted, type ScriptedModel } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool, type AgentDefinition } from '@skein/runtime'
import { z } from 'zod'
import { linesOf, requestsOf, solo } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

/** The agent of §8, word for word; what it names is registered next to it. */
const assetSubagent: AgentDefinition = defineAgent({
  name: 'asset_subagent',
  type: 'dual_ai',
  maxSessionTurns: 40,
  exposeAsTool: true,
  toolDescription: 'Generate and QA top-down game assets.',
  sideA: {
    label: 'Worker',
    prompt: 'asset_worker',
    stopOnResponse: true,
    sessionFail: {
      name: 'fail_asset',
      messageProperty: 'reason',
      attachmentsProperty: 'attachments',
    },
  },
  sideB: {
    label: 'Reviewer',
    prompt: 'asset_reviewer',
    stopOnResponse: false,
    sessionStop: {
      name: 'approve_asset',
      messageProperty: 'summary',
      attachmentsProperty: 'attachments',
    },
    sessionStatus: {
      name: 'update_asset_status',
      messageProperty: 'status',
    },
  },
})

type Script = Parameters<typeof scripted>[0]

interface Example {
  readonly worker: ScriptedModel
  readonly reviewer: ScriptedModel
  readonly parts: {
    prompts: ReturnType<typeof definePrompt>[]
    tools: ReturnType<typeof defineTool>[]
  }
}

function example(scripts: { readonly worker: Script; readonly reviewer: Script }): Example {
  const worker = scripted(scripts.worker, { modelId: 'worker' })
  const reviewer = scripted(scripts.reviewer, { modelId: 'reviewer' })
  const ending = (name: string, property: string) =>
    defineTool({
      name,
      description: name,
      risk: 'read_only',
      args: z.object({ [property]: z.string(), attachments: z.array(z.string()).optional() }),
      execute: () => 'noted',
    })
  const draw = defineTool({
    name: 'draw',
    description: 'Draws.',
    risk: 'read_only',
    args: z.object({ path: z.string() }),
    execute: async (state, { path }) => {
      await state.writeFile(path, 'pixels')
      return path
    },
  })
  const tools = [
    draw,
    ending('fail_asset', 'reason'),
    ending('approve_asset', 'summary'),
    ending('update_asset_status', 'status'),
  ]
  const prompts = [
    definePrompt({
      name: 'asset_worker',
      prompt: 'You draw.',
      model: worker,
      tools: ['draw', 'fail_asset'],
    }),
    definePrompt({
      name: 'asset_reviewer',
      prompt: 'You judge.',
      model: reviewer,
      tools: ['approve_asset', 'update_asset_status'],
    }),
  ]
  return { worker, reviewer, parts: { prompts, tools } }
}

/** Nine drafts are refused, the tenth is approved. */
const tenRounds = {
  worker: ((_, index) => says(`draft ${index + 1}`)) as Script,
  reviewer: ((_, index) =>
    index < 9
      ? says(`no ${index + 1}`)
      : calls('approve_asset', { summary: 'ten is good' })) as Script,
}

function expectViews({ worker, reviewer }: Example): void {
  expect(worker.requests).toHaveLength(10)
  expect(reviewer.requests).toHaveLength(10)
  for (let round = 1; round <= 10; round++) {
    const before = Array.from({ length: round - 1 }, (_, index) => index + 1)
    expect(linesOf(worker.requests[round - 1])).toEqual([
      'user: a castle',
      ...before.flatMap((n) => [`assistant: draft ${n}`, `user: no ${n}`]),
    ])
    expect(linesOf(reviewer.requests[round - 1])).toEqual([
      'user: a castle',
      ...before.flatMap((n) => [`user: draft ${n}`, `assistant: no ${n}`]),
      `user: draft ${round}`,
    ])
  }
}

describe('by itself', () => {
  test('SA-87 the example loads, and runs ten rounds with the right view on both sides', async () => {
    const made = example(tenRounds)
    const it = await simulate({ agents: [assetSubagent], ...made.parts })
    expect(it.runtime.registry.warnings).toEqual([])
    const { id, outcome, reason, text } = await it.ask('a castle')
    expect({ outcome, reason, text }).toEqual({
      outcome: 'completed',
      reason: 'session_stop',
      text: 'ten is good',
    })
    expectViews(made)
    expect(made.worker.requests[0]!.system).toBe('You draw.')
    expect(made.reviewer.requests[0]!.system).toBe('You judge.')
    const turns = await it.events(id, 'turn_end')
    expect(turns).toHaveLength(20)
    // The same bytes from the records.
    const sent = [...made.worker.requests, ...made.reviewer.requests].map(linesOf)
    const logs = await it.threads.logs(id)
    const details = await Promise.all(logs.map(({ logId }) => it.threads.log(id, logId)))
    const logged = details.map(({ messages }) =>
      messages.map((message) => {
        const content = message['content'] as readonly { text: string }[]
        return `${String(message['type'])}: ${content.map(({ text: part }) => part).join('')}`
      }),
    )
    expect(logged.toSorted()).toEqual(sent.toSorted())
  })

  test('SA-87 the worker may fail', async () => {
    const made = example({
      worker: [says('draft 1'), calls('fail_asset', { reason: 'no ink' })],
      reviewer: [says('no 1')],
    })
    const it = await simulate({ agents: [assetSubagent], ...made.parts })
    expect(await it.ask('a castle')).toMatchObject({
      outcome: 'failed',
      reason: 'session_fail',
      text: 'no ink',
    })
  })

  test('SA-87 words are a turn; a status, alone or next to words, keeps the seat', async () => {
    const made = example({
      worker: [says('draft 1'), says('draft 2')],
      reviewer: [
        calls('update_asset_status', { status: 'looking' }),
        [says('Hm.'), calls('update_asset_status', { status: 'waiting for a better one' })],
        says('no 1'),
        calls('approve_asset', { summary: 'good' }),
      ],
    })
    const it = await simulate({ agents: [assetSubagent], ...made.parts })
    const { id, text } = await it.ask('a castle')
    expect(text).toBe('good')
    expect((await it.events(id, 'status_changed')).flatMap((event) => event.text ?? [])).toEqual([
      'looking',
      'waiting for a better one',
    ])
    expect(linesOf(made.worker.requests[1])).toEqual([
      'user: a castle',
      'assistant: draft 1',
      'user: Hm.',
      'user: no 1',
    ])
  })
})

describe('as a subagent', () => {
  const boss = (script: Script, blocking = true) =>
    solo('boss', { script, tools: [{ name: 'asset_subagent', blocking }] })

  test('SA-87 ten rounds as a child, with the same views', async () => {
    const made = example(tenRounds)
    const top = boss([calls('asset_subagent', { message: 'a castle' }), says('Thanks.')])
    const it = await simulate({ agents: [top, assetSubagent], ...made.parts })
    expect((await it.ask('please')).text).toBe('Thanks.')
    expectViews(made)
    expect(requestsOf(top)[0]!.tools[0]).toMatchObject({
      name: 'asset_subagent',
      description: 'Generate and QA top-down game assets.',
    })
    expect(linesOf(requestsOf(top)[1]).at(-1)).toBe('tool_result: asset_subagent = "ten is good"')
  })

  test('SA-87 an approval with files, and a failure, are reported in the words of the spec', async () => {
    const made = example({
      worker: [
        calls('draw', { path: '/castle.png' }),
        says('draft 1'),
        calls('fail_asset', { reason: 'no ink' }),
      ],
      reviewer: [calls('approve_asset', { summary: 'good', attachments: ['/castle.png'] })],
    })
    const top = boss(
      [
        [calls('asset_subagent', { message: 'a castle' })],
        says('Waiting.'),
        calls('asset_subagent', { message: 'a tower' }),
        says('Waiting.'),
        says('Oh.'),
      ],
      false,
    )
    const it = await simulate({ agents: [top, assetSubagent], ...made.parts })
    const { id } = await it.ask('please')
    await it.idle()
    const children = await it.events(id, 'subagent_created')
    const [file] = await it.threads.files.list(id)
    const told = requestsOf(top).flatMap(linesOf)
    expect(told).toContain(
      `user: Subagent (reference: ${children[0]!.reference}) has returned the following result:\n\ngood\n\n${file!.path}`,
    )
    expect(told).toContain(
      `user: Subagent (reference: ${children[1]!.reference}) has reported a failure:\n\nno ink`,
    )
  })

  test('SA-87 a status is in the registry of the parent while the review continues', async () => {
    const seen = latch()
    const go = latch()
    const made = example({
      worker: [says('draft 1')],
      reviewer: [
        calls('update_asset_status', { status: 'measuring towers' }),
        async () => {
          seen.open()
          await go.reached
          return calls('approve_asset', { summary: 'good' })
        },
      ],
    })
    const top = boss(
      [calls('asset_subagent', { message: 'a castle' }), says('Waiting.'), says('Good.')],
      false,
    )
    const it = await simulate({ agents: [top, assetSubagent], ...made.parts })
    const { id } = await it.ask('please')
    await seen.reached
    expect(await it.threads.children(id)).toMatchObject([
      { name: 'asset_subagent', status: 'measuring towers', resumable: false },
    ])
    go.open()
    await it.idle()
    expect((await it.threads.settled(id)).text).toBe('Good.')
  })
})
