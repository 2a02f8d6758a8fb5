import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { scripted } from '@skein/ai/testing'
import { SkeinError } from '@skein/base'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { createRuntime } from '../runtime.ts'
import type { RuntimeOptions } from '../runtime-options.ts'
import { sqliteStore } from '../store/sqlite/sqlite-store.ts'
import { aesVault } from './vault.ts'

const key = new Uint8Array(32).fill(7)
const vault = aesVault({ key })
const canary = 'canary-6b1f-secret'

test('what is sealed opens again, and looks different each time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, context) => {
      const sealed = vault.seal(secret, context)
      expect(sealed).toMatch(/^v2\.[0-9a-f]{8}\.[A-Za-z0-9_-]+$/)
      expect(vault.open(sealed, context)).toBe(secret)
      expect(vault.seal(secret, context)).not.toBe(sealed)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 100 },
  )
  expect(vault.open(vault.seal('\ufeffx', 'c'), 'c')).toBe('\ufeffx')
})

test('the same random bytes give the same text', () => {
  const fixed = () => aesVault({ key, random: (size) => new Uint8Array(size) }).seal('x', 'c')
  expect(fixed()).toBe(fixed())
})

test.each([
  ['another key', () => aesVault({ key: new Uint8Array(32) }).open(sealed(), 'thread/NAME')],
  ['another place', () => vault.open(sealed(), 'thread/OTHER')],
  ['a changed text', () => vault.open(flipped(sealed()), 'thread/NAME')],
  ['a cut text', () => vault.open(sealed().slice(0, 20), 'thread/NAME')],
  ['no text of ours', () => vault.open(canary, 'thread/NAME')],
  ['another format', () => vault.open(sealed().replace('v2.', 'v3.'), 'thread/NAME')],
])('%s opens nothing and tells nothing', (_title, open) => {
  const error = caught(open)
  expect(error).toMatchObject({ name: 'RuntimeError', code: 'ENV_INVALID' })
  expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(canary)
})

test('every changed character is noticed', () => {
  const text = sealed()
  for (let i = 0; i < text.length; i++) {
    const other = text.slice(0, i) + (text[i] === 'A' ? 'B' : 'A') + text.slice(i + 1)
    expect(() => vault.open(other, 'thread/NAME')).toThrow('cannot be opened')
  }
})

describe('keys that change', () => {
  const newKey = new Uint8Array(32).fill(8)

  test('an old key opens what it sealed, and new values are sealed with the new one', () => {
    const rotated = aesVault({ key: newKey, oldKeys: [key] })
    expect(rotated.open(sealed(), 'thread/NAME')).toBe(canary)
    const again = rotated.seal(canary, 'thread/NAME')
    expect(aesVault({ key: newKey }).open(again, 'thread/NAME')).toBe(canary)
    expect(caught(() => vault.open(again, 'thread/NAME'))).toMatchObject({ code: 'ENV_INVALID' })
  })

  test('values that were sealed before keys had ids are opened with any of the keys', () => {
    const old = sealed().replace(/^v2\.[0-9a-f]{8}\./, 'v1.')
    expect(vault.open(old, 'thread/NAME')).toBe(canary)
    expect(aesVault({ key: newKey, oldKeys: [key] }).open(old, 'thread/NAME')).toBe(canary)
    expect(() => aesVault({ key: newKey }).open(old, 'thread/NAME')).toThrow('cannot be opened')
  })
})

describe('the key of a runtime', () => {
  const base64 = Buffer.from(key).toString('base64')
  const folder = mkdtempSync(join(tmpdir(), 'skein-vault-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const agents = [
    defineAgent({
      name: 'a',
      sideA: { prompt: definePrompt({ name: 'p', prompt: 'P.', model: scripted([]) }) },
    }),
  ]
  const secretOf = async (options: RuntimeOptions): Promise<string | undefined> => {
    const runtime = await createRuntime({ agents, ...options })
    try {
      const known = await runtime.threads.byClientId('default', 'c')
      const { id } =
        known ??
        (await runtime.threads.create({ agent: 'a', clientId: 'c', secrets: { TOKEN: canary } }))
      return await runtime.withState(id, (state) => state.env('TOKEN'))
    } finally {
      await runtime.stop()
    }
  }

  test.each([
    ['a folder', () => ({ folder: join(folder, 'refused') })],
    ['a store', () => ({ store: sqliteStore({ path: join(folder, 'refused.db') }) })],
  ])(
    '%s without a key is refused with what to do, and nothing is left open',
    async (_, options) => {
      for (let i = 0; i < 2; i++) {
        const given: RuntimeOptions = options()
        const error = await createRuntime({ agents, ...given }).catch((thrown: unknown) => thrown)
        expect(error).toMatchObject({ name: 'RuntimeError', code: 'SECRET_KEY_MISSING' })
        expect((error as SkeinError).hint).toContain('openssl rand -base64 32')
        await given.store?.close()
      }
      expect(existsSync(join(folder, 'refused', 'keys', 'secrets.key'))).toBe(false)
    },
  )

  test('memory needs none; a key may be bytes or base64; another text is refused', async () => {
    expect(await secretOf({})).toBe(canary)
    expect(await secretOf({ store: sqliteStore({ path: ':memory:' }) })).toBe(canary)
    expect(await secretOf({ folder: join(folder, 'text'), secretKey: base64 })).toBe(canary)
    expect(await secretOf({ folder: join(folder, 'text'), secretKey: key })).toBe(canary)
    await expect(secretOf({ secretKey: 'too short' })).rejects.toMatchObject({
      code: 'KEY_INVALID',
    })
  })

  test('a key that was kept with the data is read after another one was given', async () => {
    const data = join(folder, 'moved')
    expect(await secretOf({ folder: data, keepsSecretKeyWithData: true })).toBe(canary)
    expect(await secretOf({ folder: data, secretKey: key })).toBe(canary)
    const next = new Uint8Array(32).fill(8)
    const rotated = join(folder, 'rotated')
    expect(await secretOf({ folder: rotated, secretKey: key })).toBe(canary)
    expect(await secretOf({ folder: rotated, secretKey: next, oldSecretKeys: [base64] })).toBe(
      canary,
    )
    await expect(secretOf({ folder: rotated, secretKey: next })).rejects.toMatchObject({
      code: 'ENV_INVALID',
    })
  })
})

test('a key of another length and text that is none are refused', () => {
  expect(caught(() => aesVault({ key: new Uint8Array(16) }))).toMatchObject({ code: 'ENV_INVALID' })
  expect(caught(() => vault.seal('\ud800', 'c'))).toMatchObject({ code: 'ENV_INVALID' })
})

function sealed(): string {
  return vault.seal(canary, 'thread/NAME')
}

function flipped(text: string): string {
  return text.slice(0, -3) + (text.at(-3) === 'A' ? 'B' : 'A') + text.slice(-2)
}

function caught(run: () => unknown): SkeinError {
  try {
    run()
  } catch (error) {
    if (SkeinError.is(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
