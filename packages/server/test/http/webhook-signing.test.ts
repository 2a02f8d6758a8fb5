import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { keyOf, post, signedHeaders } from '../../src/webhooks/post.ts'

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

test.each(['::127.0.0.1', '[fec0::1]', '2002:7f00:1::', '64:ff9b:1::1', '127.0.0.1', '0x7f.1'])(
  'a webhook is not sent to %s',
  async (host) => {
    const url = new URL(
      `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}/`,
    )
    const { signal } = new AbortController()
    const sent = post({ url, headers: {}, body: '{}', allowsPrivate: false, signal })
    await expect(sent).rejects.toMatchObject({ code: 'WEBHOOK_ADDRESS_PRIVATE' })
  },
)

test('a name that means this machine is not resolved for a webhook', async () => {
  const { signal } = new AbortController()
  const url = new URL('http://localhost:9/')
  const sent = post({ url, headers: {}, body: '{}', allowsPrivate: false, signal })
  await expect(sent).rejects.toMatchObject({ code: 'WEBHOOK_ADDRESS_PRIVATE' })
})
