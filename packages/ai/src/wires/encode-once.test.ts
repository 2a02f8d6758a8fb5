import { expect, test } from 'vitest'
import { UserMessage, type Message } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'
import { bodyText } from './encode-history.ts'
import { encodeOnce } from './encode-once.ts'

test('a frozen message is encoded once for each key, and warns each time', () => {
  const message = new UserMessage('hi')
  let count = 0
  const warned: Warning[] = []
  const encode = (warnings: Warning[]) => {
    count++
    warnings.push({ code: 'w', message: 'm' })
    return [{ n: count }]
  }
  expect(encodeOnce(message, 'a', encode, warned)).toEqual(['{"n":1}'])
  expect(encodeOnce(message, 'a', encode, warned)).toEqual(['{"n":1}'])
  expect(encodeOnce(message, 'b', encode, warned)).toEqual(['{"n":2}'])
  expect(warned).toHaveLength(3)
})

test('a message that can still change is encoded each time', () => {
  const content = [{ type: 'text', text: 'a' }]
  // As a deserialised or hand-made message: the shape without the class.
  const message = { type: 'user', content } as unknown as Message
  const encode = () => [{ text: content[0]!.text }]
  expect(encodeOnce(message, 'k', encode)).toEqual(['{"text":"a"}'])
  content[0]!.text = 'b'
  expect(encodeOnce(message, 'k', encode)).toEqual(['{"text":"b"}'])
  Object.freeze(message)
  expect(encodeOnce(message, 'k', encode)).toEqual(['{"text":"b"}'])
  content[0]!.text = 'c'
  expect(encodeOnce(message, 'k', encode)).toEqual(['{"text":"c"}'])
})

test('bodyText puts items in without reading them', () => {
  expect(bodyText({ model: 'm' }, 'messages', '{"a":1},{"b":2}')).toBe(
    '{"model":"m","messages":[{"a":1},{"b":2}]}',
  )
  expect(bodyText({}, 'messages', '')).toBe('{"messages":[]}')
  expect(bodyText({ messages: [1] }, 'messages', '2')).toBe('{"messages":[1]}')
  expect(bodyText({ messages: undefined }, 'messages', '2')).toBe('{"messages":[2]}')
})
