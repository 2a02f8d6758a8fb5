import { describe, expect, test } from 'vitest'
import { validateThread } from '@skein/threads'
import {
  decodeUIStream,
  encodeUIMessage,
  UIStreamDecoder,
  type UIMessage,
} from '@skein/threads/ai-sdk'
import { plain } from '../../packages/threads/test/plain.ts'
import { realChat } from '../../packages/threads/test/real-chat.ts'
import { sharedText } from '../support/shared-data.ts'

const cases = [
  'v01-thinking-text-parallel-tools-retry-data',
  'v02-approval-requested',
  'v03-approval-one-yes-one-no',
]

describe.each(cases)('%s', (name) => {
  const load = (suffix: string) => sharedText(`ai-sdk/${name}.${suffix}`)
  const before = JSON.parse(load('request.json')) as UIMessage[]
  const expected = JSON.parse(load('expected.json')) as {
    messages: UIMessage[]
    status: string
    finish: object
  }
  const chunks = decodeUIStream(load('sse'))

  test('TP-42 our decoder reaches the state that was recorded', () => {
    const decoder = new UIStreamDecoder({ messages: before })
    for (const chunk of chunks) decoder.push(chunk)
    expect(plain(decoder.messages)).toEqual(expected.messages)
    expect(decoder.isFinished).toBe(true)
    const { value } = decoder.end()
    expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })

  test('the real chat reaches the state that was recorded', async () => {
    const end = await realChat(before, chunks)
    expect(end.messages).toEqual(expected.messages)
    expect(end.status).toBe(expected.status)
    expect(end.finish).toMatchObject(expected.finish)
  })

  test('the recorded message, encoded anew, brings the real chat to the same state', async () => {
    const users = expected.messages.filter((message) => message.role === 'user')
    const end = await realChat(users, encodeUIMessage(expected.messages.at(-1)!))
    expect(end.messages).toEqual(expected.messages)
  })
})
