import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'
import { expect, test } from 'vitest'
import { playBack, readRecording, type RecordedThread, replay } from '@skein/evals'
import { changedPart, keyOfRecorded, keyOfRequest } from '../src/recorded/request-key.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
const OTHER = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const agents = () => [
  defineAgent({ name: 'viewer', instructions: 'You look.', model: scripted(() => says('Seen.')) }),
]

/** A thread that was sent these pictures. */
async function shown(...pictures: readonly Uint8Array[]): Promise<RecordedThread> {
  const store = memoryStore()
  const runtime = await createRuntime({ agents: agents(), store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'viewer' })
  const attachments: string[] = []
  for (const [index, bytes] of pictures.entries()) {
    const path = `/picture-${index}.png`
    await runtime.threads.files.write(id, path, bytes)
    attachments.push(path)
  }
  await runtime.threads.run(id, { text: 'What is this?', attachments })
  const recorded = await readRecording(store, id)
  await runtime.stop()
  return recorded
}

const keyOf = (recorded: RecordedThread) => keyOfRecorded(recorded.requests[0]!.content)

test('other, more and fewer pictures make another request', async () => {
  const one = keyOf(await shown(PNG))
  expect(changedPart(one, keyOf(await shown(PNG)))).toBeUndefined()
  expect(changedPart(one, keyOf(await shown(OTHER)))).toBe('history')
  expect(changedPart(one, keyOf(await shown(PNG, PNG)))).toBe('history')
  expect(changedPart(one, keyOf(await shown()))).toBe('history')
})

test('a thread with pictures plays back, and its requests are not sent again', async () => {
  const recorded = await shown(PNG, OTHER)
  const registry = createRegistry({ agents: agents() })
  expect((await playBack(recorded, { registry })).difference).toBeUndefined()
  expect(await replay(recorded, { registry })).toMatchObject({ requests: { sent: 0 } })
})

test('a request with the picture of a tool is the recorded one', async () => {
  const draw = defineTool({
    name: 'draw',
    description: 'Draws.',
    risk: 'read_only',
    execute: async () => ({
      type: 'image',
      source: { type: 'bytes', data: PNG },
      mimeType: 'image/png',
    }),
  })
  const model = scripted([calls('draw', {}), says('Drawn.')])
  const agent = defineAgent({ name: 'artist', instructions: 'You draw.', model, tools: [draw] })
  const store = memoryStore()
  const runtime = await createRuntime({ agents: [agent], store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'artist' })
  await runtime.threads.run(id, 'Draw')
  const recorded = await readRecording(store, id)
  await runtime.stop()
  expect(recorded.requests).toHaveLength(2)
  for (const [index, { content }] of recorded.requests.entries())
    expect(keyOfRequest(model.requests[index]!, content)).toEqual(keyOfRecorded(content))
})

test('pictures in a message are counted and compared', () => {
  const picture = (data: string) => ({
    type: 'image',
    mimeType: 'image/png',
    source: { type: 'base64', data },
  })
  const key = (content: readonly unknown[]) =>
    keyOfRecorded({
      provider: 'p',
      model: 'm',
      system: '',
      tools: [],
      params: {},
      messages: [{ id: 'a', type: 'user', content }],
    } as never)
  const one = key([picture('AAAA')])
  expect(changedPart(one, key([picture('AAAA')]))).toBeUndefined()
  expect(changedPart(one, key([picture('BBBB')]))).toBe('history')
  expect(changedPart(one, key([picture('AAAA'), picture('AAAA')]))).toBe('history')
  expect(changedPart(one, key([]))).toBe('history')
})
