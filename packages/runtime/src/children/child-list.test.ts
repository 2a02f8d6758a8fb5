import type { LLMRequest } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { asSubagent } from '../definitions/as-subagent.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { createRuntime } from '../runtime.ts'
import { childNote, MOST_NOTED } from './child-list.ts'

const COUNT = 70

/** A parent that creates many children in one message, and then lists them. */
async function manyChildren(count: number) {
  const requests: LLMRequest[] = []
  const worker = asSubagent(
    defineAgent({
      name: 'worker',
      description: 'Works.',
      sideA: {
        prompt: definePrompt({ name: 'w', prompt: 'Work.', model: scripted(() => says('Done.')) }),
      },
    }),
  )
  const made = Array.from({ length: count }, (_, index) =>
    calls('subagent_create', { agent: 'worker', name: `n${index}`, message: 'go' }),
  )
  const boss = defineAgent({
    name: 'boss',
    sideA: {
      prompt: definePrompt({
        name: 'boss',
        prompt: 'Lead.',
        model: scripted((request) => {
          requests.push(request)
          const results = JSON.stringify(request.messages)
          const isListed = results.includes('Subagents 51 to')
          const list = request.tools?.find(({ name }) => name === 'subagent_list')
          const last = request.messages.at(-1)
          if (requests.length === 1) return made
          if (!list || isListed || last?.type !== 'user') return says('Ok.')
          if (!last.text.startsWith('list')) return says('Ok.')
          return [calls('subagent_list', {}), calls('subagent_list', { from: 51 })]
        }),
        tools: [{ name: worker, blocking: false, resumable: {} }],
      }),
    },
  })
  const runtime = await createRuntime({ agents: [boss], limits: { maxToolCalls: 200 } })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'boss' })
  await runtime.threads.run(id, 'Go')
  await runtime.idle()
  return { runtime, id, requests }
}

function notesIn(request: LLMRequest): readonly string[] {
  return request.messages.flatMap((message) =>
    message.type === 'user' && message.text.startsWith('[runtime] Subagents') ? [message.text] : [],
  )
}

test('a model with many subagents is sent a summary, and lists them all with a tool', async () => {
  const { runtime, id, requests } = await manyChildren(COUNT)
  try {
    const noted = requests.flatMap(notesIn)
    expect(noted.length).toBeGreaterThan(0)
    for (const note of noted) expect(note.split('\n').length).toBeLessThanOrEqual(1 + MOST_NOTED)
    expect(noted.at(-1)).toMatch(/^\[runtime\] Subagents of this thread: 70 \(/)
    await runtime.threads.run(id, 'list them')
    await runtime.idle()
    const results = JSON.stringify(requests.at(-1)!.messages)
    expect(results).toContain('Subagents 1 to 50 of 70:')
    expect(results).toContain('Subagents 51 to 70 of 70:')
    for (const { reference } of await runtime.threads.children(id))
      expect(results).toContain(reference)
  } finally {
    await runtime.stop({ graceMs: 0 })
  }
})

test('a few subagents are all in the note, and there is no tool to list them', async () => {
  const { runtime, requests } = await manyChildren(3)
  try {
    expect(requests.flatMap(({ tools = [] }) => tools.map(({ name }) => name))).not.toContain(
      'subagent_list',
    )
    expect(notesIn(requests.at(-1)!).at(-1)!.split('\n')).toHaveLength(4)
  } finally {
    await runtime.stop({ graceMs: 0 })
  }
})

test('the note names those that work or wait for a person before others', () => {
  const children = new Map(
    Array.from({ length: 100 }, (_, index) => {
      const reference = `r${index}`
      const created = {
        reference,
        name: 'worker',
        isResumable: true,
        at: new Date(0).toISOString(),
      }
      const lifecycle = index === 3 ? 'awaiting_human' : index === 5 ? 'running' : 'completed'
      return [reference, { created, lifecycle, statusText: undefined }] as const
    }),
  )
  const lines = childNote({ children } as never)!.split('\n') // the note reads only these fields
  expect(lines[0]).toContain('100 (idle 98, awaiting_human 1, running 1)')
  expect(lines[1]).toContain('(reference: r3): awaiting_human')
  expect(lines[2]).toContain('(reference: r5): running')
  expect(lines.at(-1)).toContain('(reference: r99): idle')
})
