import { expect, test } from 'vitest'
import { encodeSse } from '@skein/base'

test('writes the fields that are given, then the data, then a blank line', () => {
  expect(encodeSse({ data: 'a' })).toBe('data: a\n\n')
  expect(encodeSse({ event: 'e', data: '', id: '', retry: 0 })).toBe(
    'event: e\nid: \nretry: 0\ndata: \n\n',
  )
})

test('each line of the data is its own field, whatever ends it', () => {
  expect(encodeSse({ data: 'a\nb\r\nc\rd\n' })).toBe(
    'data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n',
  )
})

test.each([
  { event: 'a\nb', data: '' },
  { event: 'a\rdata: forged', data: '' },
  { id: 'a\nb', data: '' },
  { id: '\0', data: '' },
  { retry: 1.5, data: '' },
  { retry: -1, data: '' },
  { retry: Number.NaN, data: '' },
])('refuses %j, which would forge or lose a field', (fields) => {
  expect(() => encodeSse(fields)).toThrow(expect.objectContaining({ code: 'SSE_INVALID_FIELD' }))
})
