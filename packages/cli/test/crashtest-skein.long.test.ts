import { expect, test } from 'vitest'
import { printed, problems, WORLD } from './crashtest-kit.ts'
import { skein } from './kit.ts'
import { project } from './project.ts'

const timeout = 120_000

const tool = (options: string): string => `
import { toolFrom } from '@skein/runtime'
export default toolFrom({
  name: 'refund',
  description: 'Pays an order back.',
  parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  run: async ({ order }) => {
    await fetch('https://bank.test/' + order, { method: 'PUT' })
    return 'paid'
  },
}, { risk: 'write_high_risk', rollback: 'impossible', ${options} })
`
const files = (options: string): Readonly<Record<string, string>> => ({
  'world.js': WORLD,
  'script.json': '[{ "call": "refund", "arguments": { "order": "O-7" } }, "Done."]',
  'desk/tools/refund.ts': tool(options),
  'desk/prompts/desk.ts': `
import { openai } from '@skein/ai/openai'
import { definePrompt } from '@skein/runtime'
export default definePrompt({ name: 'desk', model: openai('gpt-5'), prompt: 'Refund.', tools: ['refund'] })
`,
  'desk/agents/desk.ts': `
import { defineAgent } from '@skein/runtime'
export default defineAgent({ name: 'desk', type: 'ai_human', sideA: { prompt: 'desk' } })
`,
})
const args =
  'crashtest desk --agent desk --model-script script.json --world world.js --json --jobs 2'.split(
    ' ',
  )

test('a folder of definitions dies around commits, requests and tools', { timeout }, async () => {
  const cwd = project(files('idempotent: true,'))
  const result = printed(
    await skein([...args, '--message', 'Refund O-7.', '--max-points', '4'], { cwd }),
  )
  expect(new Set(result.steps.map(({ kind }) => kind))).toEqual(
    new Set(['commit', 'request', 'tool']),
  )
  // `idempotent` says that paying twice is harmless, and crashtest shows that it happens.
  expect(problems(result).every((one) => one.startsWith('doubled'))).toBe(true)
  expect(problems(result).length).toBeGreaterThan(0)
})

test(
  'without a probe a person is asked: the effect is held, not repeated',
  { timeout },
  async () => {
    const cwd = project(files(''))
    const message = ['--message', 'Refund O-7.', '--max-points', '8']
    const first = await skein([...args, ...message], { cwd })
    const result = printed(first)
    expect(new Set(problems(result).map((one) => one.split(' ')[0]))).toEqual(new Set(['held']))
    expect(result.points.some(({ ending }) => ending === 'held')).toBe(true)
    expect(first.code).toBe(0)
  },
)
