import { expect, test } from 'vitest'
import { isTextFile, fileMediaType } from './media-type.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

test.each([
  ['/a/notes.md', '', 'text/markdown'],
  ['/a/PHOTO.JPG', '', 'image/jpeg'],
  ['/a.b/plain', 'text', 'text/plain'],
  ['/unknown.xyz', '\x89PNG\r\n\x1a\n…', 'image/png'],
  ['/picture', 'RIFF\0\0\0\0WEBPVP8 ', 'image/webp'],
  ['/paper', '%PDF-1.7', 'application/pdf'],
  ['/film', '\0\0\0\x18ftypmp42', 'video/mp4'],
  ['/blob', '\x00\x01\x02', 'application/octet-stream'],
  ['/latin', 'caf\xe9', 'application/octet-stream'],
  ['/empty', '', 'application/octet-stream'],
  ['/x.constructor', '\0', 'application/octet-stream'],
])('%s is known', (path, content, type) => {
  expect(fileMediaType(path, bytes(content))).toBe(type)
})

test('a long text may be cut within a character', () => {
  expect(isTextFile(Buffer.from('x' + 'é'.repeat(8192)))).toBe(true)
  expect(isTextFile(Buffer.from('é'.slice(0, 1)).subarray(0, 1))).toBe(false)
  expect(isTextFile(new Uint8Array())).toBe(true)
})
