import { describe, expect, test } from 'vitest'
import * as jose from 'jose'
import { encodeBase64Url } from '@skein/base'
import { action, AUDIENCE, desk, ISSUER, request, START } from '../../test/approval-setup.ts'
import { approvals } from './approvals.ts'
import { fromCryptoKeyPair, generateKey, toSigningKey } from '../keys/keys.ts'
import { memorySpent } from '../contract/approval.ts'
import { approve, signGrant } from './approval-token.ts'

const encode = (value: unknown): string =>
  encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)))

describe('a good approval', () => {
  test('is taken once and names who approved', async () => {
    const { approvals, sign } = await desk()
    const asked = request()
    const token = await sign(asked)
    expect(await approvals.redeem([token], asked)).toMatchObject({
      ok: true,
      approvers: [{ id: 'ana', issuer: ISSUER, type: 'human' }],
    })
    expect(await approvals.redeem([token], asked)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REPLAYED', subject: 'reverse_wire' },
    })
  })

  test('may be signed with ES256 where the issuer says so, and with keys that cannot be exported', async () => {
    const es256 = await desk({ issuer: { alg: 'ES256' } })
    expect(await es256.approvals.redeem([await es256.sign(request())], request())).toMatchObject({
      ok: true,
    })

    const pair = (await crypto.subtle.generateKey('Ed25519', false, [
      'sign',
      'verify',
    ])) as CryptoKeyPair
    const { approvals, sign } = await desk({ issuer: { keys: [pair.publicKey] } })
    const key = await fromCryptoKeyPair(pair)
    expect(await approvals.redeem([await sign(request(), { key })], request())).toMatchObject({
      ok: true,
    })
  })

  test('is valid for as long as its issuer may say, also when a second passes while it is signed', async () => {
    let now = START + 999
    const ticking = { now: () => now++ }
    const { approvals, sign } = await desk({ issuer: { maxTtlMs: 300_000 } })
    const token = await sign(request(), { ttlMs: 300_000, clock: ticking })
    const { iat, exp } = jose.decodeJwt(token)
    expect(exp! - iat!).toBe(300)
    expect(await approvals.redeem([token], request())).toMatchObject({ ok: true })
  })

  test('ends no later than the request', async () => {
    const { sign } = await desk()
    const token = await sign(request(), { ttlMs: 86_400_000 })
    const { exp } = jose.decodeJwt(token)
    expect(exp).toBe((START + 600_000) / 1000)
  })

  test('is not given for a request whose action or arguments do not belong to its digest', async () => {
    const { sign } = await desk()
    const asked = request()
    const shown = { ...asked.action, args: { wire: 'W-1', amount: 1 } }
    await expect(sign({ ...asked, action: shown })).rejects.toMatchObject({
      code: 'APPROVAL_REQUEST_INVALID',
    })
    await expect(sign({ ...asked, action: action({ tool: 'read_wire' }) })).rejects.toMatchObject({
      code: 'APPROVAL_REQUEST_INVALID',
    })
  })
})

describe('jose', () => {
  for (const alg of ['Ed25519', 'ES256'] as const) {
    test(`verifies our ${alg} tokens, and we take its`, async () => {
      const { approvals, sign, publicJwk, privateJwk } = await desk({ issuer: { alg } })
      const asked = request()
      const ours = await sign(asked)
      const { payload, protectedHeader } = await jose.jwtVerify(
        ours,
        await jose.importJWK(publicJwk as jose.JWK, alg),
        {
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: 'uaicp-approval+jwt',
          algorithms: [alg],
          currentDate: new Date(START),
        },
      )
      expect(protectedHeader).toEqual({ alg, kid: publicJwk.kid, typ: 'uaicp-approval+jwt' })
      const theirs = await new jose.SignJWT({ ...payload, jti: 'jose-1' })
        .setProtectedHeader({ alg, typ: 'uaicp-approval+jwt', kid: publicJwk.kid! })
        .sign(await jose.importJWK(privateJwk as jose.JWK, alg))
      expect(await approvals.redeem([theirs], asked)).toMatchObject({ ok: true })
      const nameless = await new jose.SignJWT({ ...payload, jti: 'jose-2' })
        .setProtectedHeader({ alg, typ: 'uaicp-approval+jwt' })
        .sign(await jose.importJWK(privateJwk as jose.JWK, alg))
      expect(await approvals.redeem([nameless], asked)).toMatchObject({ ok: true })
    })
  }

  test('thumbprints are the same', async () => {
    for (const alg of ['Ed25519', 'ES256'] as const) {
      const { publicJwk } = await generateKey({ alg })
      expect(publicJwk.kid).toBe(await jose.calculateJwkThumbprint(publicJwk as jose.JWK))
    }
  })
})

test('UAICP-24 a token within the allowed difference of clocks is accepted, once', async () => {
  const { approvals, sign, clock } = await desk({ skewMs: 60_000 })
  const asked = request()
  const token = await sign(asked, { ttlMs: 60_000 })
  clock.advance(110_000)
  expect(await approvals.redeem([token], asked)).toMatchObject({ ok: true })
  for (const ms of [0, 9_000]) {
    clock.advance(ms)
    expect(await approvals.redeem([token], asked)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REPLAYED' },
    })
  }
})

describe('quorum', () => {
  test('counts people, not tokens', async () => {
    const { approvals, sign } = await desk()
    const asked = request({}, { quorum: 2 })
    const [ana, again, ben] = [
      await sign(asked),
      await sign(asked),
      await sign(asked, { approver: 'ben' }),
    ]
    expect(await approvals.redeem([ana, again], asked)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REQUIRED' },
    })
    expect(await approvals.redeem([ana, ana], asked)).toMatchObject({ ok: false })
    expect(await approvals.redeem([ana, ben], asked)).toMatchObject({
      ok: true,
      approvers: [{ id: 'ana' }, { id: 'ben' }],
    })
  })

  test('too few are not spent, and more than enough are left for later', async () => {
    const { approvals, sign } = await desk()
    const asked = request({}, { quorum: 2 })
    const tokens = [
      await sign(asked),
      await sign(asked, { approver: 'ben' }),
      await sign(asked, { approver: 'cy' }),
    ]
    expect(await approvals.redeem(tokens.slice(0, 1), asked)).toMatchObject({ ok: false })
    expect(await approvals.redeem(tokens, asked)).toMatchObject({ ok: true })
    const more = [tokens[2]!, await sign(asked, { approver: 'dee' })]
    expect(await approvals.redeem(more, asked)).toMatchObject({ ok: true })
  })

  test('a token given for one voice does not become one of two', async () => {
    const { approvals, sign } = await desk()
    const two = request({}, { quorum: 2 })
    const tokens = [await sign(request()), await sign(two, { approver: 'ben' })]
    expect(await approvals.redeem(tokens, two)).toMatchObject({ ok: false })
  })

  test('tokens for other calls in the bundle are passed over', async () => {
    const { approvals, sign } = await desk()
    const [one, two] = [request({ call_id: 'c1' }), request({ call_id: 'c2' })]
    const tokens = [await sign(one), await sign(two)]
    expect(await approvals.redeem(tokens, two)).toMatchObject({ ok: true })
    expect(await approvals.redeem(tokens, one)).toMatchObject({ ok: true })
    expect(await approvals.redeem([], one)).toMatchObject({ reason: { code: 'APPROVAL_REQUIRED' } })
  })
})

describe('whatever is uncertain refuses', () => {
  test('a spent store, a revocation list or a rule that fails', async () => {
    const asked = request()
    const broken = (): never => {
      throw new Error('down')
    }
    const cases = [
      [await desk({ spent: { spend: broken } }), 'APPROVAL_INVALID'],
      [await desk({ spent: { spend: () => Promise.resolve(1 as never) } }), 'APPROVAL_REPLAYED'],
      [await desk({ revoked: broken }), 'APPROVAL_REVOKED'],
      [await desk({ issuer: { may: broken } }), 'APPROVAL_SCOPE'],
      [await desk({ issuer: { may: () => 'yes' as never } }), 'APPROVAL_SCOPE'],
    ] as const
    for (const [{ approvals, sign }, code] of cases) {
      expect(await approvals.redeem([await sign(asked)], asked)).toMatchObject({
        ok: false,
        reason: { code },
      })
    }
  })

  test('a request whose digest is not that of the action it shows', async () => {
    const { approvals, sign } = await desk()
    const asked = request()
    const tokens = [await sign(asked)]
    const edited = { ...asked, action: { ...asked.action, args: { wire: 'W-2' } } }
    const retargeted = {
      ...asked,
      action: action({ identity: { ...asked.action.identity, owner_id: 'x' } }),
    }
    for (const changed of [edited, retargeted]) {
      const refusal = { ok: false, reason: { code: 'APPROVAL_SCOPE' } }
      expect(await approvals.redeem(tokens, changed)).toMatchObject(refusal)
      expect(await approvals.checkGrant!(tokens[0]!, changed)).toMatchObject(refusal)
    }
    expect(await approvals.redeem(tokens, asked)).toMatchObject({ ok: true })
  })

  test('the agent, and whoever the request excludes, may not approve', async () => {
    const { approvals, sign } = await desk()
    const asked = request({}, { excluded: ['uma'] })
    for (const approver of ['uma', 'agent-1']) {
      const tokens = [await sign(asked, { approver })]
      expect(await approvals.redeem(tokens, asked)).toMatchObject({
        reason: { code: 'APPROVAL_SELF' },
      })
    }
    expect(await approvals.redeem([await sign(asked)], asked)).toMatchObject({ ok: true })
  })

  test('a request whose end is unreadable or past', async () => {
    const { approvals, sign, clock } = await desk()
    const asked = request()
    const token = await sign(asked, { ttlMs: 3_000_000 })
    expect(await approvals.redeem([token], { ...asked, expires_at: 'soon' })).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
    clock.advance(600_000)
    expect(await approvals.redeem([token], asked)).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
  })

  test('a clock that goes back does not revive a token seen as expired', async () => {
    const { approvals, sign, clock } = await desk()
    const asked = request()
    const token = await sign(asked)
    clock.advance(95_000)
    expect(await approvals.redeem([token], asked)).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
    clock.advance(-90_000)
    expect(await approvals.redeem([token], asked)).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
    expect(await approvals.redeem([await sign(asked)], asked)).toMatchObject({ ok: true })
  })

  test('settings that would weaken the check are errors', async () => {
    const { publicJwk, privateJwk } = await generateKey()
    const issuer = { keys: [publicJwk], may: () => true }
    const spent = memorySpent()
    expect(() => approvals({ audience: 'a', issuers: {}, spent, skewMs: 300_001 })).toThrow('skew')
    expect(() =>
      approvals({ audience: 'a', issuers: { i: { ...issuer, alg: 'ES256' } }, spent }),
    ).toThrow('Ed25519')
    expect(() =>
      approvals({ audience: 'a', issuers: { i: { ...issuer, keys: [privateJwk] } }, spent }),
    ).toThrow('private')
    expect(() => toSigningKey(publicJwk as never)).toThrow('"d"')
    await expect(
      approve(request(), { audience: 'a', issuer: 'i', approver: 'p', key: privateJwk, ttlMs: 0 }),
    ).rejects.toThrow('0 ms')
  })

  test('no error or reason repeats a token or a key', async () => {
    const { approvals, sign, privateJwk } = await desk()
    const token = await sign(request({ call_id: 'other' }))
    const text = JSON.stringify(await approvals.redeem([token], request()))
    expect(text).not.toContain(token.split('.')[2])
    try {
      toSigningKey({ ...privateJwk, crv: 'X' })
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify(error) + String(error)).not.toContain(privateJwk.d)
    }
  })
})

describe('standing grants', () => {
  const options = { audience: AUDIENCE, issuer: ISSUER, approver: 'ana', ttlMs: 60_000 }

  test('cover what all their members fit, again and again, and never approve as a token', async () => {
    const { approvals, privateJwk, clock } = await desk()
    const scope = { tool: 'reverse_wire', risk: 'write_high_risk', agent_id: 'agent-1' } as const
    const grant = await signGrant(scope, { ...options, key: privateJwk, clock })
    expect(await approvals.checkGrant!(grant, request())).toMatchObject({
      ok: true,
      approvers: [{ id: 'ana' }],
    })
    expect(await approvals.checkGrant!(grant, request({ call_id: 'c9' }))).toMatchObject({
      ok: true,
    })
    expect(await approvals.redeem([grant], request())).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_INVALID' },
    })
    clock.advance(120_000)
    expect(await approvals.checkGrant!(grant, request())).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
  })

  test('may be limited to a namespaced member of the identity', async () => {
    const { approvals, privateJwk, clock } = await desk()
    const scope = { tool: 'reverse_wire', risk: 'write_high_risk', 'app:thread': 't1' } as const
    const grant = await signGrant(scope, { ...options, key: privateJwk, clock })
    const { identity } = request().action
    const within = request({ identity: { ...identity, 'app:thread': 't1' } })
    expect(await approvals.checkGrant!(grant, within)).toMatchObject({ ok: true })
    const others = [request(), request({ identity: { ...identity, 'app:thread': 't2' } })]
    for (const other of others) {
      expect(await approvals.checkGrant!(grant, other)).toMatchObject({
        reason: { code: 'APPROVAL_SCOPE' },
      })
    }
  })

  test('do not cover another tool, tier, agent or request, nor a limit that is not known', async () => {
    const { approvals, privateJwk, clock, sign } = await desk()
    const base = { tool: 'reverse_wire', risk: 'write_high_risk' } as const
    const scopes = [
      { ...base, tool: 'other' },
      { ...base, risk: 'write_low_risk' as const },
      { ...base, agent_id: 'agent-2' },
      { ...base, request_id: 'x' },
      { ...base, user_id: 'nobody' },
      { ...base, args_hash: 'sha256:0' },
      { ...base, amount_below: 100 },
    ]
    for (const scope of scopes) {
      const grant = await signGrant(scope, { ...options, key: privateJwk, clock })
      expect(await approvals.checkGrant!(grant, request()), JSON.stringify(scope)).toMatchObject({
        reason: { code: 'APPROVAL_SCOPE' },
      })
    }
    expect(await approvals.checkGrant!(await sign(request()), request())).toMatchObject({
      reason: { code: 'APPROVAL_INVALID' },
    })
  })
})

test('an approval is one compact JWS of three strict base64url parts', async () => {
  const { approvals, sign } = await desk()
  const asked = request()
  const token = await sign(asked)
  const [header, payload, signature] = token.split('.') as [string, string, string]
  const variants = [
    `${header}.${payload}`,
    `${token}.`,
    `.${token}`,
    `${token}.${signature}`,
    ` ${token}`,
    `${token}\n`,
    `${header}=.${payload}.${signature}`,
    `${header}..${signature}`,
    `${header}.${payload}.`,
    `${token}A`,
    token.slice(0, -1),
    `${header}.${payload}.${'A'.repeat(86)}`,
    `${encode([])}.${payload}.${signature}`,
    `${encode({ alg: 'Ed25519', typ: 'uaicp-approval+jwt', crit: ['exp'], exp: 1 })}.${payload}.${signature}`,
    '',
    '.',
    '..',
    '...',
    'null',
    'A'.repeat(20_000),
    null,
    undefined,
    5,
    {},
    [token],
  ]
  for (const variant of variants)
    expect(await approvals.redeem([variant as string], asked), String(variant)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_INVALID' },
    })
  expect(await approvals.redeem([token], asked)).toMatchObject({ ok: true })
})
