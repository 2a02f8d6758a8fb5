import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  isPrivateAddress,
  keyOf,
  publicLookup,
  signedHeaders,
} from '../../src/http/webhooks/post.ts'

test('a message is signed over its id, time and body', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const headers = signedHeaders(
    { id: 'msg_1', body: '{"a":1}', at: 1_700_000_000_999 },
    keyOf(secret),
  )
  const expected = createHmac('sha256', Buffer.alloc(32, 7))
    .update('msg_1.1700000000.{"a":1}')
    .digest('base64')
  expect(headers).toEqual({
    'webhook-id': 'msg_1',
    'webhook-timestamp': '1700000000',
    'webhook-signature': `v1,${expected}`,
  })
})

test('a secret without prefix, or too short, is refused', () => {
  for (const secret of [
    '',
    'abc',
    'whsec_',
    `whsec_${Buffer.alloc(8).toString('base64')}`,
    Buffer.alloc(32).toString('base64'),
  ])
    expect(() => keyOf(secret)).toThrow(/secret of a webhook/)
})

test('addresses of this machine and of private networks are known as such', () => {
  const inside = [
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '64:ff9b::7f00:1',
    'nonsense',
  ]
  expect(inside.filter((address) => !isPrivateAddress(address))).toEqual([])
  const outside = ['1.1.1.1', '8.8.8.8', '172.32.0.1', '2606:4700::1111']
  expect(outside.filter(isPrivateAddress)).toEqual([])
})

test('a name that means this machine is not resolved for a webhook', async () => {
  const error = await new Promise((resolve) => publicLookup('localhost', {}, resolve))
  expect(error).toMatchObject({ code: 'WEBHOOK_ADDRESS_PRIVATE' })
})
