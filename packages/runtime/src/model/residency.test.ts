import { bedrock } from '@skein/ai/bedrock'
import { openai } from '@skein/ai/openai'
import { fallback } from '@skein/ai/routing'
import { says, vendorServer } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { defineModel, definePrompt } from '../definitions/define.ts'
import { verifyAudit } from '../governance/audit-export.ts'
import { createRuntime } from '../runtime.ts'
import { defineAgent } from '../definitions/define-agent.ts'

/** A thread with one message, whose model is a fallback with the rule `eu`. */
async function run(region: string, hasOther = false) {
  const server = vendorServer([says('Hello.')])
  const config = { apiKey: 'k', fetch: server.fetch }
  const claude = bedrock('anthropic.claude-sonnet-4-5', { region })
  const models = [openai('gpt-5'), claude].map((model) => ({ model, config }))
  const model = defineModel({
    name: 'm',
    model: fallback(models, { residency: 'eu' }),
    fallbacks: hasOther ? [defineModel({ name: 'other', model: openai('gpt-5'), config })] : [],
  })
  const prompt = definePrompt({ name: 'p', model, prompt: '' })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', message: 'hi' })
  await runtime.idle()
  const audit = await runtime.threads.audit(id)
  const { lifecycle } = await runtime.threads.get(id)
  const { ok } = await verifyAudit(audit, { keys: [audit.publicKey] })
  await runtime.stop()
  const lines = audit.lines.filter((line) => line.includes('skein:residency'))
  return { lines, ok, lifecycle, sent: server.requests.length }
}

test('where an answer was made is in the audit log, with the models that were left out', async () => {
  const { lines, ok, sent } = await run('eu-central-1')
  expect(sent).toBe(1)
  expect(ok).toBe(true)
  expect(lines.length).toBeGreaterThan(0)
  for (const fact of ['"residency":"eu"', '"region":"eu-central-1"', '"excluded":["openai/gpt-5"]'])
    expect(lines[0]).toContain(fact)
})

test('that nothing was sent is in the audit log, too', async () => {
  const { lines, ok, sent, lifecycle } = await run('us-east-1')
  expect(sent).toBe(0)
  expect(ok).toBe(true)
  expect(lines.length).toBeGreaterThan(0)
  expect(lines[0]).toContain('"refused":true')
  expect(lifecycle).toBe('failed')
})

test('no other model of the prompt is asked instead: it has no rule', async () => {
  const { sent, lifecycle } = await run('us-east-1', true)
  expect(sent).toBe(0)
  expect(lifecycle).toBe('failed')
})
