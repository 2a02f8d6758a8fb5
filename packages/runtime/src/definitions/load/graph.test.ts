import { scripted, says } from '@skein/ai/testing'
import { createRegistry, defineAgent, definePrompt, defineTool } from '@skein/runtime'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'

interface Edit {
  readonly text?: string
  readonly tool?: string
  readonly required?: boolean
  readonly risk?: 'read_only' | 'write_low_risk'
  readonly steps?: number
  readonly title?: string
  readonly childText?: string
  readonly secret?: string
  readonly answer?: string
}

function hashOf(edit: Edit = {}): string {
  const { text = 'Hi.', tool = 'look', required = false, risk = 'read_only', steps = 5 } = edit
  const model = scripted(() => says(edit.answer ?? 'x'))
  const look = defineTool({
    name: tool,
    description: '',
    risk,
    args: z.object({ at: required ? z.string() : z.string().optional() }),
    execute: () => edit.answer ?? 'x',
  })
  const talk = definePrompt({ name: 'talk', prompt: edit.childText ?? 'Talk.', model })
  const child = defineAgent({
    name: 'child',
    type: 'dual_ai',
    maxSessionTurns: 5,
    exposeAsTool: true,
    toolDescription: 'child',
    sideA: { prompt: talk },
    sideB: { prompt: talk },
  })
  const prompt = definePrompt({ name: 'p', prompt: text, model, tools: [look, { name: child }] })
  const env = { KEY: edit.secret ?? 'k' }
  const main = defineAgent({
    name: 'main',
    title: edit.title,
    env,
    sideA: { prompt, maxSteps: steps },
  })
  return createRegistry({ agents: [main] }).agent('main').hash
}

test('the hash names prompts, tools, schemas, risks, limits and children', () => {
  const edits: Edit[] = [
    {},
    { text: 'Hello.' },
    { tool: 'see' },
    { required: true },
    { risk: 'write_low_risk' },
    { steps: 6 },
    { childText: 'Speak.' },
  ]
  const hashes = edits.map(hashOf)
  expect(new Set(hashes).size).toBe(edits.length)
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{32}$/)
})

test('titles, code and the values of variables do not change the hash; any text has one', () => {
  const own = hashOf()
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string({ unit: 'binary' }), (title, secret, text) => {
      expect(hashOf({ title, secret, answer: 'another function' })).toBe(own)
      expect(hashOf({ text })).toBe(hashOf({ text }))
      expect(hashOf({ text: `${text}\ud800` })).not.toBe(hashOf({ text }))
    }),
    { numRuns: 50 },
  )
})

test('agents that reach each other have hashes, and each has its own', () => {
  const model = scripted(() => says('x'))
  const agent = (name: string, to: string) =>
    defineAgent({
      name,
      exposeAsTool: true,
      toolDescription: name,
      sideA: { prompt: definePrompt({ name, prompt: '', model, tools: [to] }) },
    })
  const { agents } = createRegistry({ agents: [agent('x', 'y'), agent('y', 'x')] })
  expect(agents.get('x')!.hash).not.toBe(agents.get('y')!.hash)
})
