import { afterAll, beforeAll, expect, test } from 'vitest'
import { startKit, type Kit } from './http-kit.ts'

let kit: Kit
beforeAll(async () => {
  kit = await startKit()
})
afterAll(() => kit.stop())

async function newThread(message?: string, who: 'acme' | 'ada' = 'acme'): Promise<string> {
  const { id } = await kit.json<{ id: string }>(who, 'POST', '/threads', {
    agent: 'desk',
    ...(message !== undefined && { message }),
  })
  if (message !== undefined) await kit.runtime.threads.settled(id)
  return id
}

test('a thread is created, spoken to, read and removed', async () => {
  const id = await newThread()
  const sent = await kit.ask('acme', 'POST', `/threads/${id}/messages`, { text: 'Hello' })
  expect(sent.status).toBe(202)
  const result = await kit.json<{ outcome: string; text: string }>(
    'acme',
    'GET',
    `/threads/${id}/result`,
  )
  expect(result).toMatchObject({
    outcome: 'completed',
    text: expect.stringContaining('You said: Hello.'),
  })
  const { messages } = await kit.json<{ messages: { message: { type: string } }[] }>(
    'acme',
    'GET',
    `/threads/${id}/messages`,
  )
  expect(messages.map(({ message }) => message.type)).toEqual(['user', 'assistant'])
  const gone = await kit.ask('acme', 'DELETE', `/threads/${id}`)
  expect(gone.status).toBe(204)
  expect((await kit.ask('acme', 'GET', `/threads/${id}`)).status).toBe(404)
})
