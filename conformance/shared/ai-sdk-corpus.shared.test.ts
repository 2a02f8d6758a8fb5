import { safeValidateUIMessages } from 'ai'
import { describe, expect, test } from 'vitest'
import type { Thread } from '@skein/threads'
import {
  encodeUIMessage,
  fromUIMessages,
  toUIMessages,
  UIMessageAssembler,
  type ToUIMessagesOptions,
} from '@skein/threads/ai-sdk'
import { fromPydanticAI } from '@skein/threads/pydantic-ai'
import { plain } from '../../packages/threads/test/plain.ts'
import { realChat, realRead, refusedChunk } from '../../packages/threads/test/real-chat.ts'
import { corpusTexts, generatedText } from '../support/shared-data.ts'

const generated = [
  'g01-two-runs-retries',
  'g02-deferred-pending',
  'g03-deferred-resumed',
  'g06-multimodal-tool-return',
]

function threads(): Thread[] {
  const texts = [...corpusTexts(), ...generated.map(generatedText)]
  return texts.map((text) => fromPydanticAI(text).value)
}

describe('the whole corpus', () => {
  const all = threads()
  const modes: ToUIMessagesOptions[] = [{ carry: 'public' }, { carry: 'all' }]

  test('every chunk we emit passes the real schema', async () => {
    for (const options of modes) {
      for (const message of all.flatMap((thread) => toUIMessages(thread, options))) {
        if (message.role === 'assistant')
          expect(await refusedChunk(encodeUIMessage(message))).toBeUndefined()
      }
    }
  })

  test('the real reader ends in the state that the direct conversion gives', async () => {
    for (const options of modes) {
      for (const message of all.flatMap((thread) => toUIMessages(thread, options))) {
        if (message.role !== 'assistant') continue
        expect(await realRead(encodeUIMessage(message))).toEqual(plain(message))
      }
    }
  }, 120_000)

  test('the real chat ends in the state that the direct conversion gives', async () => {
    for (const thread of all) {
      const messages = toUIMessages(thread)
      const last = messages.at(-1)
      if (last?.role !== 'assistant' || messages.at(-2)?.role !== 'user') continue
      const end = await realChat(messages.slice(0, -1), encodeUIMessage(last))
      expect(end.status).toBe('ready')
      expect(end.messages).toEqual(plain(messages))
    }
  }, 120_000)

  test('our assembler agrees with the real reader', () => {
    for (const message of all.flatMap((thread) => toUIMessages(thread, { carry: 'all' }))) {
      if (message.role !== 'assistant') continue
      const assembler = new UIMessageAssembler()
      for (const chunk of encodeUIMessage(message)) assembler.push(chunk)
      expect(plain(assembler.message)).toEqual(plain(message))
    }
  })

  test('a thread that travels whole comes back equal, also through the real validation', async () => {
    for (const thread of all) {
      const messages = plain(toUIMessages(thread, { carry: 'all' }))
      expect(fromUIMessages(messages, { thread, carrier: 'trust' }).value).toEqual(plain(thread))
      if (messages.length === 0) continue
      const checked = await safeValidateUIMessages({ messages })
      if (!checked.success) throw checked.error
      expect(
        fromUIMessages(plain(checked.data) as typeof messages, { thread, carrier: 'trust' }).value,
      ).toEqual(plain(thread))
    }
  }, 120_000)

  test('what is shown to everyone passes the real validation', async () => {
    for (const thread of all) {
      const messages = plain(toUIMessages(thread))
      if (messages.length === 0) continue
      const checked = await safeValidateUIMessages({ messages })
      if (!checked.success) throw checked.error
      expect(plain(checked.data)).toEqual(messages)
    }
  })
})
