import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { UserMessage } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { defineHook, definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-redaction-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// Three secrets: of the thread, of the installation, and one that is set later.
const CANARIES = ['canary-thread-1234', 'canary-instance-5678', 'canary-late-9012']
const [OF_THREAD, OF_INSTANCE, LATE] = CANARIES as [string, string, string]
const ALL = CANARIES.join(' and ')

test('no secret of a thread stands in its log, its stream, its export or its files, whichever door it comes through', async () => {
  const ask = defineTool({
    name: 'ask',
    description: 'Asks.',
    args: z.object({}),
    risk: 'read_only',
  })
  const hook = defineHook({
    hook: 'before_update_message',
    id: 'fails',
    execute: () => {
      throw new Error(`The hook saw ${ALL}.`)
    },
  })
  const model = scripted(({ messages }) =>
    messages.length === 1
      ? says('Fine.')
      : messages.at(-1)?.type === 'user'
        ? calls('ask', {})
        : says('Done.'),
  )
  const variables = [{ name: 'INSTANCE', type: 'secret' as const }]
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model, tools: [ask], variables })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt }, hooks: [hook] })],
    store: sqliteStore({ path: join(folder, 'skein.db') }),
    secretKey: new Uint8Array(32),
    env: { INSTANCE: OF_INSTANCE },
  })
  const { threads, inbox } = runtime
  const early = `${OF_THREAD} and ${OF_INSTANCE}`
  const { id } = await threads.create({
    agent: 'a',
    secrets: { TOKEN: OF_THREAD },
    title: `About ${early}`,
    tags: [OF_THREAD],
    metadata: { note: early },
    values: { kept: early },
    message: `First: ${early}`,
  })
  const streamed: string[] = []
  const abort = new AbortController()
  const reading = (async () => {
    for await (const event of runtime.subscribe(id, { signal: abort.signal }))
      streamed.push(JSON.stringify(event))
  })()
  await threads.env.set(id, 'LATE', LATE, { type: 'secret' })
  await threads.env.set(id, 'URL', `https://${OF_THREAD}@host`)
  const sent = await threads.send(id, { text: `Queued: ${ALL}`, metadata: { note: ALL } })
  await threads.unsend(id, sent.queueId)
  await runtime.start()
  await threads.settled(id)
  const [first] = await threads.messages(id)
  await threads.updateMessage(id, first!.id, new UserMessage(`Changed: ${ALL}`))
  await threads.update(id, { title: `Now ${ALL}`, tags: [LATE] })
  await threads.values.set(id, 'later', [ALL])
  await threads.run(id, `Second: ${Buffer.from(OF_THREAD).toString('base64')}`)
  const [item] = await inbox.list()
  await inbox.answer(item!, { type: 'result', value: { note: ALL } })
  await threads.settled(id)
  const told = [
    JSON.stringify(await threads.events(id)),
    JSON.stringify(await threads.get(id)),
    await threads.export(id),
    JSON.stringify(await threads.messages(id)),
    JSON.stringify(await threads.document(id)),
  ]
  // A text variable is what its setter says it is: tools need it as it was given.
  const text = await runtime.withState(id, (state) => state.env('URL'))
  expect(text).toBe(`https://${OF_THREAD}@host`)
  abort.abort()
  await reading.catch(() => undefined)
  expect(told[0]).toContain('HOOK_FAILED')
  expect(told[0]).toContain('Queued: ')
  expect(streamed.join('\n')).toContain('Queued: ')
  const isUrl = (line: string): string => line.replaceAll(`https://${OF_THREAD}@host`, '')
  for (const line of [...told, ...streamed])
    for (const canary of CANARIES) expect(isUrl(line)).not.toContain(canary)
  await threads.env.set(id, 'URL', null)
  await runtime.stop()
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name)).toString('latin1')
    for (const canary of CANARIES) expect(isUrl(bytes), name).not.toContain(canary)
  }
})
