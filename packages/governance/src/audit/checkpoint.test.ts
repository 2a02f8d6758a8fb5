import { expect, test } from 'vitest'
import { encodeBase64Url } from '@skein/base'
import {
  cosignCheckpoint,
  countWitnesses,
  encodeNoteKey,
  isSignedBy,
  parseCheckpoint,
  parseNote,
  signCheckpoint,
  verifyCheckpoint,
} from './checkpoint.ts'
import { generateKey, toSigningKey, toVerifyKey } from '../keys/keys.ts'
import { leafHash } from './merkle.ts'

const origin = 'example.com/audit'
const head = { origin, size: 3, root: leafHash('x') }

test('the note of the Go checksum database documentation verifies, and no other text does', async () => {
  const vkey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
  const x = encodeBase64Url(new Uint8Array(Buffer.from(vkey.split('+')[2]!, 'base64').subarray(1)))
  const jwk = { kty: 'OKP', crv: 'Ed25519', x }
  expect(encodeNoteKey('PeterNeumann', jwk)).toBe(vkey)
  const text =
    'If you think cryptography is the answer to your problem,\n' +
    "then you don't know what your problem is.\n"
  const signature =
    '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n'
  const key = toVerifyKey(jwk)
  const note = parseNote(`${text}\n${signature}`)!
  expect(await isSignedBy(note, 'PeterNeumann', key)).toBe(true)
  expect(await isSignedBy({ ...note, text: `${text}!\n` }, 'PeterNeumann', key)).toBe(false)
  expect(await isSignedBy(note, 'PaulNeumann', key)).toBe(false)
})

test('a checkpoint says origin, size and root, and verifies under its key alone', async () => {
  const { privateJwk, publicJwk } = await generateKey()
  const other = await generateKey()
  const checkpoint = await signCheckpoint(head, toSigningKey(privateJwk))
  expect(checkpoint.split('\n').slice(0, 2)).toEqual([origin, '3'])
  expect(await verifyCheckpoint(checkpoint, [other.publicJwk, publicJwk])).toMatchObject(head)
  expect(await verifyCheckpoint(checkpoint, [other.publicJwk])).toBeUndefined()
  expect(await verifyCheckpoint(checkpoint.replace('\n3\n', '\n4\n'), [publicJwk])).toBeUndefined()
  // Signed under another name by the same key: a head of another log.
  const elsewhere = await signCheckpoint({ ...head, origin: 'other' }, toSigningKey(privateJwk))
  const renamed = elsewhere.replace(/^other/, origin)
  expect(await verifyCheckpoint(renamed, [publicJwk])).toBeUndefined()
})

test('text that is not a checkpoint is none', async () => {
  const { privateJwk } = await generateKey()
  const good = await signCheckpoint(head, toSigningKey(privateJwk))
  expect(parseCheckpoint(good)).toMatchObject(head)
  const bad = [
    '',
    '\n',
    'x\n',
    good.slice(0, -1),
    good.replace('\n3\n', '\n03\n'),
    good.replace('\n3\n', '\n-3\n'),
    good.replace('\n3\n', '\n3.0\n'),
    good.replace('\n3\n', '\n9007199254740993\n'),
    good.replace('— ', '- '),
    good.replace('\n\n', '\n'),
    good.replace('=\n', '\n'),
    good.replace('example', 'exam\tple'),
    `${good}\n`,
    good + 'x'.repeat(70_000),
  ]
  for (const text of bad)
    expect(parseCheckpoint(text), JSON.stringify(text.slice(0, 80))).toBeUndefined()
})

test('witnesses are counted once each, with their own keys and times', async () => {
  const log = await generateKey()
  const [a, b] = [await generateKey(), await generateKey()]
  const signed = await signCheckpoint(head, toSigningKey(log.privateJwk))
  const time = Date.UTC(2026, 0, 1)
  const once = await cosignCheckpoint(signed, {
    name: 'w.a',
    key: toSigningKey(a.privateJwk),
    time,
  })
  const twice = await cosignCheckpoint(once, {
    name: 'w.a',
    key: toSigningKey(a.privateJwk),
    time: time + 9e3,
  })
  const witnesses = [
    { name: 'w.a', key: a.publicJwk },
    { name: 'w.b', key: b.publicJwk },
  ]
  expect(await verifyCheckpoint(twice, [log.publicJwk])).toMatchObject(head)
  expect(await countWitnesses(parseCheckpoint(twice)!, witnesses)).toBe(1)
  const both = await cosignCheckpoint(twice, { name: 'w.b', key: toSigningKey(b.privateJwk), time })
  expect(await countWitnesses(parseCheckpoint(both)!, witnesses)).toBe(2)
  const foreign = await cosignCheckpoint(signed, {
    name: 'w.b',
    key: toSigningKey(a.privateJwk),
    time,
  })
  expect(await countWitnesses(parseCheckpoint(foreign)!, witnesses)).toBe(0)
})
