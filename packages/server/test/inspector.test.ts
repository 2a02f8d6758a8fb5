import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { agent, AgentState } from '@skein/agents'
import { llm, tool } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { inspector, openInspected } from '@skein/server/inspector'
import { threadView } from '@skein/runtime/view'

function folderOf(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skein-inspector-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const add = tool({
  name: 'add',
  description: 'Adds one.',
  parameters: z.object({ a: z.number() }),
  run: ({ a }) => ({ sum: a + 1 }),
})

/** Opens what was written, as `skein studio` does. */
async function opened(folder: string) {
  const { runtime, refresh } = await openInspected(folder)
  onTestFinished(() => runtime.stop({ graceMs: 0 }))
  expect(await refresh()).toEqual([])
  return { runtime, refresh, threads: runtime.threads }
}

test('a call of llm() becomes a thread: messages, requests, tools, usage and times', async () => {
  const folder = folderOf()
  const model = scripted([calls('add', { a: 1 }, { id: 'c1' }), says('It is 2.')])
  const ask = llm({ model, system: 'You add.', tools: [add], middleware: [inspector({ folder })] })
  const turn = await ask.generate('1 + 1?')
  const { threads } = await opened(folder)
  const [thread] = await threads.list()
  expect(thread).toMatchObject({ agent: 'llm', lifecycle: 'idle', firstWords: '1 + 1?' })
  const { id } = thread!
  const { usage } = threadView(await threads.events(id))
  const { inputTokens, outputTokens } = turn.usage
  expect(usage).toMatchObject({ inputTokens, outputTokens, requests: 2, turns: 1 })
  const messages = await threads.messages(id)
  expect(messages.map(({ message }) => message.type)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'assistant',
  ])
  const logs = await threads.logs(id)
  expect(logs).toHaveLength(2)
  expect(logs[1]).toMatchObject({ provider: 'scripted', finishReason: 'end_turn' })
  expect(logs[1]!.durationMs).toBeGreaterThanOrEqual(0)
  const sent = await threads.log(id, logs[1]!.logId)
  expect(sent).toMatchObject({ system: 'You add.', tools: [{ name: 'add' }] })
  expect(sent.messages).toHaveLength(3)
  expect(JSON.stringify(sent.messages[2])).toContain('"sum":2')
  // The fold of the file is that of any thread: the document and the cost are there too.
  expect((await threads.document(id)).turns.length).toBeGreaterThan(0)
})

test('streams, failures and cancelled calls are written too', async () => {
  const folder = folderOf()
  const middleware = [inspector({ folder, name: 'My desk!' })]
  const stream = llm({ model: scripted([says('Streamed.')]), middleware }).stream('Hi')
  for await (const _ of stream) void _
  const failing = llm({ model: scripted([fails('Overloaded.')]), middleware })
  await expect(failing.generate('Fail')).rejects.toThrow()
  const { threads } = await opened(folder)
  const list = await threads.list({ sort: 'oldest' })
  expect(list.map(({ agent: name, firstWords }) => [name, firstWords])).toEqual([
    ['My_desk_', 'Hi'],
    ['My_desk_', 'Fail'],
  ])
  const [log] = await threads.logs(list[1]!.id)
  expect(log?.error).toMatchObject({ code: 'PROVIDER_ERROR' })
  const ended = (await threads.events(list[1]!.id)).find(
    ({ event }) => event.type === 'session_end',
  )
  expect(ended?.event).toMatchObject({ outcome: 'failed' })
})

test('a run of agent() is one thread, also when runs overlap', async () => {
  const folder = folderOf()
  const model = scripted([calls('add', { a: 1 }, { id: 'c1' }), says('Two.'), says('Hello.')])
  const desk = agent({
    model,
    system: 'Be short.',
    tools: [add],
    middleware: [inspector({ folder, name: 'desk' })],
  })
  const first = await desk.generate('1 + 1?', AgentState.initial())
  await desk.generate('And hello', first.state)
  const { threads } = await opened(folder)
  const [one, two] = await threads.list({ sort: 'oldest' })
  expect([one!.firstWords, await threads.logs(one!.id)]).toMatchObject(['1 + 1?', [{}, {}]])
  // The second run shows the history that the model was given.
  expect(await threads.messages(two!.id)).toHaveLength(6)
  const [log] = await threads.logs(two!.id)
  expect(await threads.log(two!.id, log!.logId)).toMatchObject({ system: 'Be short.' })
})

test('no key is written: of the call, of the environment, or named', async () => {
  const folder = folderOf()
  vi.stubEnv('SHOP_TOKEN', 'canary-of-environment')
  onTestFinished(() => void vi.unstubAllEnvs())
  const ask = llm({
    model: scripted([says('canary-of-answer canary-of-environment')]),
    config: { apiKey: 'canary-of-call' },
    system: 'canary-of-call canary-of-answer',
    middleware: [inspector({ folder, secrets: ['canary-of-answer'] })],
  })
  await ask.generate('My key is canary-of-call.')
  const [name] = readdirSync(folder)
  const file = join(folder, name!)
  const lines = readFileSync(file, 'utf8')
  const blobs = lines
    .split('\n')
    .flatMap((line) => /"base64":"([^"]+)"/.exec(line)?.[1] ?? [])
    .map((text) => Buffer.from(text, 'base64').toString())
  expect(lines + blobs.join('')).toContain('[redacted]')
  expect(lines + blobs.join('')).not.toContain('canary')
  expect(statSync(file).mode & 0o077).toBe(0)
  await opened(folder) // hashes of contents still hold
})

test('a file that cannot be written or read disturbs nobody', async () => {
  const errors: unknown[] = []
  const middleware = [inspector({ folder: '/dev/null/x', onError: (error) => errors.push(error) })]
  const turn = await llm({ model: scripted([says('Fine.')]), middleware }).generate('Hi')
  expect(turn.response.text).toBe('Fine.')
  expect(errors).toHaveLength(1)
  const { runtime, refresh } = await openInspected(join(import.meta.dirname, 'inspector.test.ts'))
  onTestFinished(() => runtime.stop({ graceMs: 0 }))
  expect(await refresh()).toEqual([expect.stringContaining('inspector.test.ts: ')])
  expect(await refresh()).toEqual([]) // it is said once
  expect(await runtime.threads.list()).toEqual([])
})
