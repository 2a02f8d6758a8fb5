import { expect, test } from 'vitest'
import { discover } from '@skein/runtime'
import { modelsByAgent, scriptedAgents } from '../src/connect/agent-models.ts'
import { project } from './project.ts'

const imports = `import { agent } from '@skein/agents'
import { fallback, rateLimit, RateLimiter, route } from '@skein/ai/routing'
import { openai } from '@skein/ai/openai'
import { says, scripted } from '@skein/ai/testing'
import { defineAgent } from '@skein/runtime'
const script = scripted([says('ok')])
const limiter = new RateLimiter({ requests: 1 })
`
const file = (name: string, rest: string): string =>
  `${imports}export default defineAgent({ name: '${name}', ${rest} })\n`

test('a script is found wherever an agent may reach it, and the model of an agent() is named', async () => {
  const model = (name: string, text: string): string =>
    file(name, `instructions: '', model: ${text}`)
  const registry = await discover(
    project({
      'agents/plain.ts': model('plain', 'script'),
      'agents/limited.ts': model('limited', 'rateLimit(script, { limiter })'),
      'agents/spare.ts': model('spare', `fallback([openai('gpt-5'), script])`),
      'agents/nested.ts': model('nested', `fallback([openai('gpt-5'), fallback([script])])`),
      'agents/library.ts': file('library', 'sideA: { agent: agent({ model: script }) }'),
      'agents/real.ts': model('real', `fallback([openai('gpt-5'), openai('scripted/x')])`),
    }),
  )
  const found = scriptedAgents(registry).map(({ subject }) => subject)
  expect(found).toEqual(
    ['library', 'limited', 'nested', 'plain', 'spare'].map((name) => `agent "${name}"`),
  )
  expect(modelsByAgent(registry)).toMatchObject({
    library: 'scripted script',
    spare: 'fallback openai/gpt-5|scripted/script',
  })
})
