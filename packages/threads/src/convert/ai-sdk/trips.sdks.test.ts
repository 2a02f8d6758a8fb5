import { manualClock } from '@skein/base'
import type * as ai from 'ai'
import { convertToModelMessages, safeValidateUIMessages } from 'ai'
import { describe, expect, test } from 'vitest'
import { answered, endings, lastParts } from '../../../test/call-endings.ts'
import { plain } from '../../../test/plain.ts'
import { realChat } from '../../../test/real-chat.ts'
import { fullThread } from '../../../test/samples.ts'
import { encodeUIMessage } from './encode-ui-message.ts'
import { fromUIMessages } from './from-ui-messages.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'

/** For messages that come from a store of one's own. */
const trusted = { clock: manualClock(Date.UTC(2026, 0, 1)), carrier: 'trust' } as const

describe('retry, denial, interruption and failure', () => {
  test.each(Object.keys(endings))(
    'a %s is the same after the trip through the real chat',
    async (name) => {
      const messages = toUIMessages(answered(endings[name]!))
      const end = await realChat(messages.slice(0, 1), encodeUIMessage(messages[1]!))
      expect(lastParts(fromUIMessages(end.messages as UIMessage[], trusted))).toEqual([
        endings[name],
      ])
      // And through the server's own validation of what the client sends back.
      const checked = await safeValidateUIMessages({ messages: end.messages })
      if (!checked.success) throw checked.error
      expect(lastParts(fromUIMessages(plain(checked.data) as UIMessage[], trusted))).toEqual([
        endings[name],
      ])
    },
  )
})

test("the AI SDK's own conversion for models passes over our data parts", async () => {
  const messages = toUIMessages(fullThread())
  expect(JSON.stringify(messages)).toContain('tp-turn')
  expect(JSON.stringify(await convertToModelMessages(messages as ai.UIMessage[]))).not.toContain(
    'tp-turn',
  )
})

test('our types are accepted where the ai package asks for its own', () => {
  const messages: ai.UIMessage[] = toUIMessages(fullThread())
  const chunks: ai.UIMessageChunk[] = [
    ...encodeUIMessage(messages[0] as UIMessage),
  ] satisfies UIMessageChunk[]
  expect(messages.length + chunks.length).toBeGreaterThan(0)
})
