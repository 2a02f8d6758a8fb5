import { describe, expect, test } from 'vitest'
import { amzDate, sign } from './aws-signature.ts'

// The suite `aws-sig-v4-test-suite` and the examples that AWS publishes with Signature Version 4, written from its
// documentation.

const keys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const date = '20150830T123600Z'
const common = { keys, region: 'us-east-1', service: 'service' }
const none = new Uint8Array()

interface Vector {
  readonly name: string
  readonly method?: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signedHeaders?: string
  readonly signature: string
}

const base = 'https://example.amazonaws.com/'
const vectors: readonly Vector[] = [
  {
    name: 'get-vanilla',
    signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  },
  {
    name: 'get-vanilla-query-order-key-case',
    url: `${base}?Param2=value2&Param1=value1`,
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  {
    name: 'get-vanilla-empty-query-key',
    url: `${base}?Param1=value1`,
    signature: 'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
  },
  {
    name: 'post-vanilla',
    method: 'POST',
    signature: '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  },
  {
    name: 'post-x-www-form-urlencoded',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'Param1=value1',
    signedHeaders: 'content-type;host;x-amz-date',
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
]

describe('the published vectors', () => {
  test.each(vectors)('$name', async (vector) => {
    const { method = 'GET', url = base, headers = {}, body, signature } = vector
    const { signedHeaders = 'host;x-amz-date' } = vector
    const { authorization } = await sign(
      {
        ...common,
        method,
        url,
        headers: { ...headers, 'x-amz-date': date },
        body: body === undefined ? none : new TextEncoder().encode(body),
        now: 0,
      },
      date,
    )
    expect(authorization).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    )
  })

  test('the example of IAM: canonical request, string to sign and signature', async () => {
    const parts = await sign(
      {
        keys,
        region: 'us-east-1',
        service: 'iam',
        method: 'GET',
        url: 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08',
        headers: {
          'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
          'x-amz-date': date,
        },
        body: none,
        now: 0,
      },
      date,
    )
    expect(parts.canonicalRequest).toBe(
      [
        'GET',
        '/',
        'Action=ListUsers&Version=2010-05-08',
        'content-type:application/x-www-form-urlencoded; charset=utf-8',
        'host:iam.amazonaws.com',
        'x-amz-date:20150830T123600Z',
        '',
        'content-type;host;x-amz-date',
        'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      ].join('\n'),
    )
    expect(parts.stringToSign).toBe(
      [
        'AWS4-HMAC-SHA256',
        date,
        '20150830/us-east-1/iam/aws4_request',
        'f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59',
      ].join('\n'),
    )
    expect(parts.authorization).toMatch(
      /Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7$/,
    )
  })
})

test('a path that is encoded already is encoded once more, as Bedrock checks it', async () => {
  const url = 'https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1%3A0/converse'
  const input = { ...common, service: 'bedrock', method: 'POST', url, headers: {}, body: none, now: 0 } // prettier-ignore
  const { canonicalRequest } = await sign(input, date)
  expect(canonicalRequest.split('\n')[1]).toBe('/model/a.b-v1%253A0/converse')
})

test('a time is written without its milliseconds', () => {
  expect(amzDate(Date.UTC(2015, 7, 30, 12, 36, 0, 789))).toBe(date)
})
