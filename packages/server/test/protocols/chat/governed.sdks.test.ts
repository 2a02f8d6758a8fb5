import type { UIMessage } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import OpenAI from 'openai'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { startChatClientKit, type ChatClientKit } from './chat-client.ts'
import { KEYS, plain } from './chat-kit.ts'

const read = defineTool({
  name: 'read',
  description: 'Reads the facts.',
  args: z.object({}),
  risk: 'read_only',
  execute: () => 'facts',
})

/** Claims first, reads when it is sent back, and claims again. */
const clerk = defineAgent({
  name: 'clerk',
  sideA: {
    prompt: definePrompt({
      name: 'clerk',
      prompt: 'Report.',
      tools: [read],
      model: scripted(({ messages }) => {
        const asked = messages.findLastIndex(
          (message) => message.type === 'user' && message.text.startsWith('Report'),
        )
        const since = messages.slice(asked + 1)
        if (messages[asked]?.text.includes('lie')) return says('Believe me.')
        if (since.length === 0) return says('An unproven claim.')
        const hasRead = since.some(({ type }) => type === 'tool_result')
        return hasRead ? says('A proven claim.') : [says('Let me look. '), calls('read')]
      }),
    }),
  },
  taskClass: {
    name: 'report',
    needs: [{ type: 'tool_result', source: 'read' }],
    verifiers: [
      { id: 'any', timeoutMs: 1000, check: () => [{ check_id: 'any', result: 'pass' as const }] },
    ],
    repair: { max: 1 },
  },
})

let kit: ChatClientKit
let strict: ChatClientKit
beforeAll(async () => {
  kit = await startChatClientKit({ runtime: { agents: [clerk] } })
  strict = await startChatClientKit({
    runtime: { agents: [clerk] },
    http: { chat: { hold: true } },
  })
})
afterAll(() => Promise.all([kit.stop(), strict.stop()]))

const texts = (message: UIMessage | undefined): string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []))

const api = '/agents/clerk/chat'

/** Everything that was on the wire. */
async function wire(from: ChatClientKit, path: string, text: string): Promise<string> {
  const body = JSON.stringify({
    id: `wire-${text}`,
    messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }],
  })
  const headers = { 'content-type': 'application/json' }
  return (await from.fetch('ada', path, { method: 'POST', headers, body })).text()
}

test('what a governed agent says is marked until the gate has let it through', async () => {
  const chat = kit.chat('ada', { id: 'marked', api })
  await chat.sendMessage({ text: 'Report' })
  expect(chat.lastMessage?.metadata).toMatchObject({ skein: { isVerified: true } })
  expect(texts(chat.lastMessage)).toEqual([
    'An unproven claim.',
    'Let me look. ',
    'A proven claim.',
  ])
  const sent = await wire(kit, api, 'Report')
  expect(sent).toMatch(/"isVerified":false[^]*unproven[^]*proven[^]*"isVerified":true/s)
  const history = await (await kit.fetch('ada', `${api}/marked`)).json()
  expect((history as { messages: unknown }).messages).toEqual(plain(chat.messages))
})

test('held back, nothing is seen that was not delivered', async () => {
  const chat = kit.chat('ada', { id: 'held', api: `${api}?hold=true` })
  await chat.sendMessage({ text: 'Report' })
  expect(texts(chat.lastMessage)).toEqual(['A proven claim.'])
  expect(JSON.stringify(chat.messages)).not.toContain('unproven')
  const history = await (await kit.fetch('ada', `${api}/held?hold=true`)).json()
  expect((history as { messages: unknown }).messages).toEqual(plain(chat.messages))
  for (const path of [api, `${api}?hold=false`]) {
    const sent = await wire(strict, path, `Report ${path.length}`)
    expect(sent).toContain('A proven claim.')
    expect(sent).not.toContain('unproven')
    expect(sent).not.toContain('Let me look')
  }
})

test('an answer that is never let through is an error, and its words are not seen', async () => {
  const chat = strict.chat('ada', { id: 'lie', api })
  await chat.sendMessage({ text: 'Report a lie' })
  expect(chat.status).toBe('error')
  expect(chat.error?.message).toContain('EVIDENCE_MISSING')
  expect(JSON.stringify(chat.messages)).not.toContain('Believe')
})

test.each([false, true])(
  'compatible clients hear what was delivered (stream: %s)',
  async (stream) => {
    const client = new OpenAI({
      apiKey: KEYS.ada.key,
      baseURL: 'http://localhost/v1',
      maxRetries: 0,
      fetch: (input, init) => kit.http.fetch(new Request(input as string, init)),
    })
    const messages = [{ role: 'user' as const, content: 'Report' }]
    if (!stream) {
      const answer = await client.chat.completions.create({ model: 'clerk', messages })
      expect(answer.choices[0]!.message.content).toBe('A proven claim.')
    } else {
      const answer = client.chat.completions.stream({ model: 'clerk', messages })
      expect(await answer.finalContent()).toBe('A proven claim.')
    }
    const lie = [{ role: 'user' as const, content: 'Report a lie' }]
    await expect(client.chat.completions.create({ model: 'clerk', messages: lie })).rejects.toThrow(
      /EVIDENCE_MISSING/,
    )
  },
)
