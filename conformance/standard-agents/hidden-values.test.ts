// Values that models must not see (Standard Agents §7.6) inside other texts.
import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { child, finished, linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const canary = 'canary-7731-blue'

test.each(['nameEnv', 'descriptionEnv'])(
  'SA-54 SA-56 a hint (%s) that contains a scoped value reaches the model without it',
  async (hint) => {
    const helper = child('helper')
    const top = solo('boss', {
      script: () => says('Look.'),
      tools: [{ name: helper, blocking: false, immediate: { [hint]: 'HINT', scopedEnv: ['KEY'] } }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { HINT: `Use ${canary} now`, KEY: canary } })
    await it.idle()
    expect(linesOf(requestsOf(top)[0]).join()).toContain('Use [redacted] now')
    for (const { logId } of await it.threads.logs(id))
      expect(JSON.stringify(await it.threads.log(id, logId))).not.toContain(canary)
    const sent = [...requestsOf(top), ...requestsOf(helper)].map(({ messages }) => messages)
    expect(JSON.stringify(sent)).not.toContain(canary)
  },
)

test('SA-56 a summary is made without a scoped value that was said before it was set', async () => {
  const top = solo('boss', {
    script: ({ messages }) =>
      says(JSON.stringify(messages).includes('too long') ? 'A summary.' : 'I see.'),
    tools: [{ name: child('helper'), immediate: { scopedEnv: ['KEY'] }, optional: 'NEVER' }],
    prompt: { compaction: { maxTokens: 200, keepMessages: 1 }, includeChat: true },
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  await it.run(id, `My key is ${canary}.`)
  await it.threads.env.set(id, 'KEY', canary)
  const before = requestsOf(top).length
  await it.run(id, 'x'.repeat(2000))
  const sent = requestsOf(top)
    .slice(before)
    .map(({ messages }) => JSON.stringify(messages))
  expect(sent).toHaveLength(2)
  expect(sent[0]).toContain('My key is [redacted].')
  expect(sent.join()).not.toContain(canary)
})

test.each(['the thread above', 'a tool before it', 'a tool while it lives'])(
  'SA-55 a text with a secret in it, set by %s, reaches the tools of a child as it is, and no model',
  async (by) => {
    const seen: string[] = []
    const url = `https://${canary}@host`
    const read = tool('read', (state) => {
      seen.push(state.env('URL'))
      return state.env('URL')
    })
    const helper = child('helper', {
      script: ({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('read') : finished('done'),
      tools: [read],
      system: [{ type: 'env', property: 'URL' }],
    })
    const set = tool('set', (state) => state.setEnv('URL', url))
    const create = calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
    const top = solo('boss', {
      script:
        by === 'a tool while it lives'
          ? [create, calls('set'), calls('read'), says('Done.')]
          : [
              calls(by === 'the thread above' ? 'read' : 'set'),
              create,
              calls('read'),
              says('Done.'),
            ],
      tools: [set, read, { name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const env = { URL: by === 'the thread above' ? url : 'none' }
    const id = await it.create({ env, secrets: { KEY: canary } })
    await it.run(id, 'hi')
    const [{ reference } = { reference: '' }] = await it.threads.children(id)
    await it.run(reference, 'again')
    expect(new Set(seen.slice(-2))).toEqual(new Set([url]))
    expect(seen).not.toContain('https://[redacted]@host')
    const sent = [...requestsOf(top), ...requestsOf(helper)]
    expect(
      sent.filter(({ system, messages }) => JSON.stringify([system, messages]).includes(canary)),
    ).toEqual([])
    expect(JSON.stringify(await it.threads.events(reference))).not.toContain(canary)
  },
)
