import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { says, startVendorServer } from '@skein/ai/testing'
import { expect, onTestFinished, test } from 'vitest'
import { printed, problems, WORLD } from './crashtest-kit.ts'
import { skein } from './kit.ts'
import { project } from './project.ts'

const timeout = 120_000

/** Asks a model, then does what it says. */
const asking = (url: string): string => `
const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Which order?' }] })
const headers = { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY }
const response = await fetch('${url}/v1/chat/completions', { method: 'POST', headers, body })
const { choices } = await response.json()
await fetch('https://bank.test/' + choices[0].message.content, { method: 'PUT' })
`

test(
  '--record asks the vendor once, and all other starts and --replay answer from the file',
  { timeout },
  async () => {
    const vendor = await startVendorServer([says('O-7')])
    onTestFinished(() => vendor.close())
    const { host } = new URL(vendor.url)
    const cwd = project({ 'app.js': asking(vendor.url), 'world.js': WORLD })
    const args = ['crashtest', 'app.js', '--world', 'world.js', '--model-host', host, '--json']
    const env = { OPENAI_API_KEY: 'sk-canary-0123456789' }
    const recorded = printed(await skein([...args, '--record', 'model.json'], { cwd, env }))
    expect(vendor.requests).toHaveLength(1)
    expect(recorded.steps.map(({ name }) => name)[1]).toBe('PUT https://bank.test/O-7')
    expect(problems(recorded)).toEqual(['doubled after 2'])
    expect(readFileSync(join(cwd, 'model.json'), 'utf8')).not.toContain('canary')
    const replayed = printed(await skein([...args, '--replay', 'model.json'], { cwd }))
    expect(vendor.requests).toHaveLength(1)
    expect(replayed).toEqual(recorded)
  },
)

test('a script may be a module with a function of the request', { timeout }, async () => {
  const cwd = project({
    'app.js': asking('https://api.openai.com'),
    'world.js': WORLD,
    'script.js': `export default ({ messages }) => ({ do: 'text', text: messages[0].content[0].text.length + '' })`,
  })
  const args = [
    'crashtest',
    'app.js',
    '--world',
    'world.js',
    '--json',
    '--model-script',
    'script.js',
  ]
  const result = printed(await skein(args, { cwd }))
  expect(result.steps.map(({ name }) => name)[1]).toBe('PUT https://bank.test/12')
})
