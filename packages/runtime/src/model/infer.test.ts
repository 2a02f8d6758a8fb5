import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { scripted } from '@skein/ai/testing'
import type { ModelReference } from '@skein/ai'
import { expect, test } from 'vitest'
import { createRegistry } from '../definitions/load/registry.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import { paramsOf } from './params.ts'

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  risk: 'read_only',
  execute: () => 1,
})

function params(model: ModelReference, providerOptions = {}): Promise<unknown> {
  const meaning = { toolChoice: 'required', reasoning: { effort: 'high' } } as const
  const prompt = definePrompt({
    name: 'p',
    prompt: '',
    model,
    tools: [look],
    providerOptions,
    ...meaning,
  })
  const { a } = createRegistry({ agents: [defineAgent({ name: 'x', sideA: { prompt } })] }).agent(
    'x',
  )
  return paramsOf(a.prompt.models[0]!, a)
}

test('effort and tool choice are said in the words of the vendor', async () => {
  expect(await params(openai('gpt-5'))).toEqual({
    reasoning: { effort: 'high' },
    tool_choice: 'required',
  })
  expect(await params(openai('gpt-5', { api: 'chat' }))).toEqual({
    reasoning_effort: 'high',
    tool_choice: 'required',
  })
  expect(await params(anthropic('claude-sonnet-4-5'))).toMatchObject({
    tool_choice: { type: 'any' },
  })
  expect(await params(google('gemini-3-pro'))).toMatchObject({
    toolConfig: { functionCallingConfig: { mode: 'ANY' } },
  })
})

test('what the prompt says to the vendor itself wins, and other models are told nothing', async () => {
  expect(await params(openai('gpt-5'), { tool_choice: 'auto' })).toMatchObject({
    tool_choice: 'auto',
  })
  expect(await params(scripted([]))).toEqual({})
})
