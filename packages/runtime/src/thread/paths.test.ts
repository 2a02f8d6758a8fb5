import fc from 'fast-check'
import { expect, test } from 'vitest'
import { attachmentPath, normalisePath } from './paths.ts'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 300 }

test.each([
  ['/a/b.txt', '/a/b.txt'],
  ['//a///b.txt', '/a/b.txt'],
  ['/cafe\u0301.md', '/caf\u00e9.md'],
  ['/.hidden', '/.hidden'],
  ['/a/...', '/a/...'],
  ['/ein Name', '/ein Name'],
])('%j is kept as %j', (path, normal) => {
  expect(normalisePath(path)).toBe(normal)
})

test.each([
  ['', 'begin'],
  ['a.txt', 'begin'],
  ['/', 'ends with'],
  ['/a/', 'ends with'],
  ['/a/../b', '".."'],
  ['/..', '".."'],
  ['/./a', '"."'],
  ['/a\0b', 'control'],
  ['/a\nb', 'control'],
  ['/a\u0085b', 'control'],
  ['/a\\b', 'backslash'],
  ['/..\\..\\etc', 'backslash'],
  ['/\ud800', 'well-formed'],
  [`/${'x'.repeat(256)}`, '255'],
  [`/${'é'.repeat(128)}`, '255'],
  [`/${'x'.repeat(200)}`.repeat(6), '1024'],
])('%j is refused', (path, problem) => {
  expect(() => normalisePath(path)).toThrow(
    expect.objectContaining({
      code: 'FILE_PATH_INVALID',
      message: expect.stringContaining(problem) as string,
    }),
  )
})

test.each(['/a/.. ', '/ ..', '/. /a', '/a/..\u00a0'])('dots among spaces are dots: %j', (path) => {
  expect(() => normalisePath(path)).toThrow('has a segment')
})

test('limits are exact', () => {
  expect(normalisePath(`/${'x'.repeat(255)}`)).toHaveLength(256)
  const longest = `/${'x'.repeat(255)}`.repeat(4)
  expect(normalisePath(longest)).toHaveLength(1024)
  expect(() => normalisePath(`/y${longest}`)).toThrow('1024')
})

test('whatever is accepted is normal, and stays inside', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom(...'/..\\a\0 '), fc.string({ unit: 'binary', maxLength: 1 })),
    maxLength: 20,
  })
  fc.assert(
    fc.property(text, (path) => {
      let normal: string
      try {
        normal = normalisePath(`/${path}`)
      } catch {
        return
      }
      expect(normalisePath(normal)).toBe(normal)
      expect(new URL(normal.replace(/[?#%]/g, 'x'), 'file:///').pathname.split('/')).toHaveLength(
        normal.split('/').length,
      )
      expect(normal.split('/').slice(1)).not.toContain('')
      expect(normal.split('/')).not.toContain('..')
    }),
    runs,
  )
})

test('a copy has the name of its source, and the same path for the same salt', () => {
  expect(attachmentPath('/reports/may.pdf', 'a')).toBe('/attachments/may-ca978112.pdf')
  expect(attachmentPath('/x/may.pdf', 'a')).toBe('/attachments/may-ca978112.pdf')
  expect(attachmentPath('/may.pdf', 'b')).not.toBe('/attachments/may-ca978112.pdf')
  expect(attachmentPath('/README', 'a')).toBe('/attachments/README-ca978112')
  expect(attachmentPath('/.env', 'a')).toBe('/attachments/.env-ca978112')
  expect(attachmentPath('/a.tar.gz', 'a')).toBe('/attachments/a.tar-ca978112.gz')
  expect(attachmentPath('/a.', 'a')).toBe('/attachments/a.-ca978112')
  expect(() => attachmentPath('/../a', 'a')).toThrow('cannot be used')
})

test('a copy of any file has a path that can be used', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.string(), (name, salt) => {
      let source: string
      try {
        source = normalisePath(`/${name}`)
      } catch {
        return
      }
      const copy = attachmentPath(source, salt)
      expect(normalisePath(copy)).toBe(copy)
      expect(copy).toMatch(/^\/attachments\/[^/]+-[0-9a-f]{8}(\.[^/.]+)?$/u)
    }),
    runs,
  )
})
