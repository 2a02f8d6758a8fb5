import { describe, expect, test } from 'vitest'
import * as jose from 'jose'
import { encodeBase64Url, type JsonObject } from '@skein/base'
import {
  action,
  AUDIENCE,
  desk,
  type Desk,
  ISSUER,
  request,
  START,
} from '../../test/approval-setup.ts'
import { approvals } from './approvals.ts'
import { createIssuerKeys } from './issuer-keys.ts'
import { developmentDesk } from './signing-desk.ts'
import { fromCryptoKeyPair, generateKey, signJws, toSigningKey } from '../keys/keys.ts'
import type { ApprovalRequest, Redemption } from '../index.ts'
import { memorySpent, type SpentStore } from '../contract/spent-store.ts'
import { actionDetails, APPROVAL_TYP, approve, GRANT_TYP, signGrant } from './approval-token.ts'

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

/** Redeems a token with these claims beside the usual ones, signed with the key of the desk. */
function redeemClaims(
  { approvals, privateJwk }: Desk,
  claims: Record<string, unknown>,
  asked: ApprovalRequest = request(),
): Promise<Redemption> {
  const now = START / 1000
  const usual = { iss: ISSUER, sub: 'ana', aud: AUDIENCE, jti: 'j', iat: now, exp: now + 60 }
  const all = { ...usual, authorization_details: [actionDetails(asked)], ...claims }
  const signed = signJws(all as JsonObject, toSigningKey(privateJwk), { typ: APPROVAL_TYP })
  return signed.then((token) => approvals.redeem([token], asked))
}

describe('the claims of a token', () => {
  /** Seconds from now: issued, not before, expires; then the answer. Clocks may differ by 30 s. */
  test.each([
    [0, 0, 60, 'ok'],
    [-90, -90, -29, 'ok'],
    [-90, -90, -30, 'APPROVAL_EXPIRED'],
    [30, 0, 60, 'ok'],
    [31, 0, 60, 'APPROVAL_NOT_YET_VALID'],
    [0, 30, 60, 'ok'],
    [0, 31, 60, 'APPROVAL_NOT_YET_VALID'],
    [0, 0, 3600, 'ok'],
    [0, 0, 3601, 'APPROVAL_INVALID'],
    [30, 30, 3630, 'ok'],
    [30, 0, 3601, 'APPROVAL_INVALID'],
    [0, 30, 3601, 'APPROVAL_INVALID'],
    [0, undefined, 60, 'ok'],
    [31, undefined, 60, 'APPROVAL_NOT_YET_VALID'],
  ])('UAICP-24 issued at %s s, valid from %s s to %s s: %s', async (iat, nbf, exp, answer) => {
    const now = START / 1000
    const times = { iat: now + iat, ...(nbf !== undefined && { nbf: now + nbf }), exp: now + exp }
    const redeemed = await redeemClaims(await desk(), times)
    expect(redeemed.ok ? 'ok' : redeemed.reason.code).toBe(answer)
    if (!redeemed.ok) expect(redeemed.reason.subject).toBe('reverse_wire')
  })

  test('UAICP-24 no token counts from the millisecond on in which its request ends', async () => {
    for (const [ms, ok] of [
      [0, false],
      [1, true],
    ] as const) {
      const asked = request({}, { expires_at: new Date(START + ms).toISOString() })
      expect((await redeemClaims(await desk(), {}, asked)).ok).toBe(ok)
    }
  })

  test.each([
    { iss: 5 },
    { sub: '' },
    { sub: undefined },
    { sub: 'a\nb' },
    { sub: 'x'.repeat(513) },
    { jti: 7 },
    { jti: 'a\u0000' },
    { jti: 'a\u007f' },
    { aud: [] },
    { aud: [AUDIENCE, AUDIENCE] },
    { aud: [5] },
    { iat: undefined },
    { iat: -1 },
    { iat: '1' },
    { nbf: null, iat: undefined },
    { nbf: '1' },
    { exp: 8.64e12 + 1 },
    { authorization_details: undefined },
    { authorization_details: [] },
    { authorization_details: ['details'] },
    { authorization_details: { type: 'uaicp_action' } },
  ])('UAICP-24 with %o it is no token', async (claims) => {
    expect(await redeemClaims(await desk(), claims)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_INVALID', subject: 'reverse_wire' },
    })
  })

  test('UAICP-24 an audience in a list of one, and names of 512 characters, are accepted', async () => {
    const claims = { aud: [AUDIENCE], jti: 'x'.repeat(512) }
    expect(await redeemClaims(await desk(), claims)).toMatchObject({ ok: true })
  })

  test('UAICP-24 every member of the details has to be that of the action, and further ones may be there', async () => {
    const asked = request()
    const details = actionDetails(asked)
    expect(Object.keys(details)).toEqual(['type', 'request_id', 'tool', 'risk', 'digest', 'quorum'])
    for (const name of Object.keys(details)) {
      const { [name]: _left, ...rest } = details
      for (const changed of [rest, { ...details, [name]: 'other' }]) {
        const redeemed = await redeemClaims(await desk(), { authorization_details: [changed] })
        expect(redeemed, name).toMatchObject({ reason: { code: 'APPROVAL_SCOPE' } })
      }
    }
    const more = [{ ...details, note: 'seen at the desk' }]
    expect(await redeemClaims(await desk(), { authorization_details: more })).toMatchObject({
      ok: true,
    })
  })

  test('UAICP-24 a signed token says who, for whom, for what and for how long', async () => {
    const { sign, privateJwk, publicJwk } = await desk()
    const ids = () => 'j-1'
    const clock = { now: () => START + 1999 }
    const end = new Date(START + 600_999).toISOString()
    const asked = request({}, { expires_at: end, quorum: 2 })
    const token = await sign(asked, { ids, clock, ttlMs: 2000 })
    const now = START / 1000
    expect(jose.decodeProtectedHeader(token)).toEqual({
      alg: 'Ed25519',
      kid: publicJwk.kid,
      typ: APPROVAL_TYP,
    })
    const common = {
      iss: ISSUER,
      sub: 'ana',
      aud: AUDIENCE,
      jti: 'j-1',
      iat: now + 1,
      nbf: now + 1,
    }
    expect(jose.decodeJwt(token)).toEqual({
      ...common,
      exp: now + 3,
      authorization_details: [actionDetails(asked)],
    })
    // Not a second longer than its request.
    expect(jose.decodeJwt(await sign(asked, { ttlMs: 3_600_000 })).exp).toBe(now + 600)
    const scope = { tool: 'reverse_wire', risk: 'write_low_risk', task: 't' } as const
    const options = { audience: AUDIENCE, issuer: ISSUER, approver: 'ana', key: privateJwk }
    const grant = await signGrant(scope, { ...options, ids, clock, ttlMs: 86_400_000 })
    expect(jose.decodeProtectedHeader(grant).typ).toBe(GRANT_TYP)
    expect(jose.decodeJwt(grant)).toEqual({
      ...common,
      exp: now + 86_401,
      authorization_details: [{ type: 'uaicp_grant', ...scope }],
    })
    for (const ttlMs of [0, -1, Number.NaN])
      await expect(sign(asked, { ttlMs })).rejects.toMatchObject({ code: 'APPROVAL_TTL_INVALID' })
  })
})

describe('the settings of approvals', () => {
  test('UAICP-24 a revocation check is told of the token, and only true revokes', async () => {
    const told: unknown[] = []
    const answers = [false, undefined, 'yes', true]
    const made = await desk({ revoked: (token) => (told.push(token), answers.shift() as boolean) })
    const codes: string[] = []
    for (const jti of ['a', 'b', 'c', 'd']) {
      const redeemed = await redeemClaims(made, { jti })
      codes.push(redeemed.ok ? 'ok' : redeemed.reason.code)
    }
    expect(codes).toEqual(['ok', 'ok', 'ok', 'APPROVAL_REVOKED'])
    expect(told[0]).toEqual({ issuer: ISSUER, jti: 'a', approver: 'ana', issuedAt: START })
  })

  test('UAICP-24 a token stays spent until no clock would accept it', async () => {
    const spends: unknown[] = []
    const spent: SpentStore = { spend: async (...given) => spends.push(given) > 0 }
    await redeemClaims(await desk({ spent, skewMs: 5000 }), {})
    expect(spends).toEqual([[`${ISSUER}\nj`, START + 60_000 + 10_000]])
  })

  test('UAICP-24 the same id of two issuers is two tokens; each has its limits and its kind of approver', async () => {
    const one = await generateKey()
    const two = await generateKey()
    const { clock } = await desk()
    const gate = approvals({
      audience: AUDIENCE,
      spent: memorySpent({ clock }),
      clock,
      issuers: {
        bank: { keys: [one.publicJwk], may: () => true },
        robot: {
          keys: [two.publicJwk],
          may: ({ tool }, who) => tool === 'reverse_wire' && who === 'bot',
          approvers: 'system',
          maxTtlMs: 10_000,
        },
      },
    })
    const asked = request()
    const sign = (issuer: string, key: typeof one, approver: string, ttlMs: number) =>
      approve(asked, {
        audience: AUDIENCE,
        issuer,
        approver,
        key: key.privateJwk,
        ttlMs,
        clock,
        ids: () => 'same',
      })
    expect(await gate.redeem([await sign('bank', one, 'ana', 60_000)], asked)).toEqual({
      ok: true,
      approvers: [{ id: 'ana', issuer: 'bank', jti: 'same', type: 'human' }],
    })
    const codeOf = async (token: string): Promise<string> => {
      const redeemed = await gate.redeem([token], asked)
      return redeemed.ok ? 'ok' : redeemed.reason.code
    }
    expect(await codeOf(await sign('robot', two, 'bot', 11_000))).toBe('APPROVAL_INVALID')
    expect(await codeOf(await sign('robot', two, 'ana', 10_000))).toBe('APPROVAL_SCOPE')
    expect(await codeOf(await sign('robot', one, 'bot', 10_000))).toBe('APPROVAL_INVALID')
    expect(await gate.redeem([await sign('robot', two, 'bot', 10_000)], asked)).toEqual({
      ok: true,
      approvers: [{ id: 'bot', issuer: 'robot', jti: 'same', type: 'system' }],
    })
  })

  test('UAICP-24 clocks may differ by 0 to 5 minutes', async () => {
    for (const skewMs of [0, 300_000]) await expect(desk({ skewMs })).resolves.toBeDefined()
    for (const skewMs of [-1, 300_001, Number.NaN])
      await expect(desk({ skewMs })).rejects.toMatchObject({ code: 'APPROVAL_SKEW_INVALID' })
  })

  test('UAICP-24 the name of a key chooses among the keys of an issuer; a key without name is always tried', async () => {
    const [a, b] = [await generateKey({ kid: 'a' }), await generateKey({ kid: 'b' })]
    const { kid: _kid, ...nameless } = (await generateKey()).publicJwk
    const pair = (await crypto.subtle.generateKey('Ed25519', false, [
      'sign',
      'verify',
    ])) as CryptoKeyPair
    const keys = [a.publicJwk, b.publicJwk, nameless, pair.publicKey]
    const find = createIssuerKeys('bank', keys, 'Ed25519')
    const namesOf = async (kid: unknown) => (await find(kid)).map(({ jwk }) => jwk.x)
    const exported = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const always = [nameless.x, exported.x]
    expect(await namesOf('a')).toEqual([a.publicJwk.x, ...always])
    expect(await namesOf('b')).toEqual([b.publicJwk.x, ...always])
    expect(await namesOf('c')).toEqual(always)
    expect(await namesOf(undefined)).toEqual([a.publicJwk.x, b.publicJwk.x, ...always])
    const rotated = await desk({ issuer: { keys } })
    for (const { privateJwk: key } of [a, b]) {
      const token = await rotated.sign(request(), { key })
      expect(await rotated.approvals.redeem([token], request())).toMatchObject({ ok: true })
    }
  })

  test('UAICP-24 a platform key of another kind, or a private one, is refused when it is first used', async () => {
    const p256 = { name: 'ECDSA', namedCurve: 'P-256' }
    const other = await crypto.subtle.generateKey(p256, true, ['sign', 'verify'])
    const own = (await crypto.subtle.generateKey('Ed25519', true, [
      'sign',
      'verify',
    ])) as CryptoKeyPair
    for (const key of [other.publicKey, own.privateKey])
      await expect(createIssuerKeys('bank', [key], 'Ed25519')('a')).rejects.toMatchObject({
        code: 'KEY_INVALID',
      })
  })
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
    expect(await approvals.redeem([], one)).toMatchObject({
      reason: { code: 'APPROVAL_REQUIRED', subject: 'reverse_wire', detail: '1 approval needed.' },
    })
    const pair = request({}, { quorum: 2 })
    expect(await approvals.redeem([], pair)).toMatchObject({
      reason: { code: 'APPROVAL_REQUIRED', detail: '2 approvals needed.' },
    })
    // Nobody is never enough.
    expect(await approvals.redeem([], request({}, { quorum: 0 }))).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REQUIRED', detail: '1 approval needed.' },
    })
  })

  test('UAICP-24 a refusal says what is wrong with a token for this call, not that others are for other calls', async () => {
    const { approvals, sign, clock } = await desk()
    const [one, two] = [request({ call_id: 'c1' }), request({ call_id: 'c2' })]
    const tokens = [await sign(two), await sign(one)]
    clock.advance(95_000)
    tokens.unshift(await sign(two))
    expect(await approvals.redeem(tokens, one)).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
    expect(await approvals.redeem(tokens.slice(0, 1), one)).toMatchObject({
      reason: { code: 'APPROVAL_SCOPE', subject: 'reverse_wire' },
    })
    const self = await sign(one, { approver: 'agent-1' })
    expect(await approvals.redeem([self, ...tokens], one)).toMatchObject({
      reason: { code: 'APPROVAL_SELF' },
    })
    expect(await approvals.redeem([...tokens, self], one)).toMatchObject({
      reason: { code: 'APPROVAL_EXPIRED' },
    })
  })

  test('UAICP-24 the desk of a developer signs as one, for a minute', async () => {
    const { clock } = await desk()
    const made = await developmentDesk(AUDIENCE, clock)
    const [token, late] = [await made.sign(request(), {}), await made.sign(request(), {})]
    expect(await made.approvals.redeem([token], request())).toMatchObject({
      ok: true,
      approvers: [{ id: 'developer', issuer: 'development', type: 'human' }],
    })
    expect(jose.decodeJwt(late).exp! - jose.decodeJwt(late).iat!).toBe(60)
  })

  test('UAICP-24 a token that was spent elsewhere is made up for by another person', async () => {
    const { approvals, sign } = await desk()
    const asked = request({}, { quorum: 2 })
    const [ana, ben] = [await sign(asked), await sign(asked, { approver: 'ben' })]
    expect(await approvals.redeem([ana, ben], asked)).toMatchObject({ ok: true })
    const [cy, dee] = [
      await sign(asked, { approver: 'cy' }),
      await sign(asked, { approver: 'dee' }),
    ]
    expect(await approvals.redeem([ana, cy, dee], asked)).toMatchObject({
      ok: true,
      approvers: [{ id: 'cy' }, { id: 'dee' }],
    })
    const eve = await sign(asked, { approver: 'eve' })
    const forged = `${eve.slice(0, eve.lastIndexOf('.'))}.${'A'.repeat(86)}`
    expect(await approvals.redeem([ana, forged, 'no token'], asked)).toMatchObject({
      ok: false,
      refused: [
        { approver: 'eve', code: 'APPROVAL_INVALID', signed: false },
        // One token of two people is not enough, so it was not spent and is none of the refused.
      ],
    })
    expect(await approvals.redeem([ana, eve], asked)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REPLAYED' },
      refused: [{ approver: 'ana', code: 'APPROVAL_REPLAYED', signed: true }],
    })
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
        reason: { code, subject: 'reverse_wire' },
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
    const unreadable = { ...asked, action: { ...asked.action, args: { wire: 1n } as never } }
    await expect(sign(unreadable)).rejects.toMatchObject({ code: 'APPROVAL_REQUEST_INVALID' })
    for (const changed of [edited, retargeted, unreadable]) {
      const reason = { code: 'APPROVAL_SCOPE', subject: changed.action.tool }
      const refusal = { ok: false, reason }
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
        reason: { code: 'APPROVAL_SELF', subject: 'reverse_wire' },
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
      reason: { code: 'APPROVAL_EXPIRED', subject: 'reverse_wire' },
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

  test('UAICP-24 cover all members that they name, a lower tier too, and are refused when signed for too long', async () => {
    const { approvals, privateJwk, clock } = await desk()
    const { request_id, task, args_hash } = action()
    const identity = { agent_id: 'agent-1', owner_id: 'bank', user_id: 'uma' }
    const scope = { tool: 'reverse_wire', risk: 'write_high_risk', ...identity } as const
    const all = { ...scope, request_id, task, args_hash }
    const grant = await signGrant(all, { ...options, key: privateJwk, clock })
    for (const risk of ['write_high_risk', 'write_low_risk'] as const)
      expect(await approvals.checkGrant!(grant, request({ risk }))).toMatchObject({ ok: true })
    const low = { ...scope, risk: 'write_low_risk' } as const
    const forLow = await signGrant(low, { ...options, key: privateJwk, clock })
    expect(await approvals.checkGrant!(forLow, request({ risk: 'write_low_risk' }))).toMatchObject({
      ok: true,
    })
    const long = await signGrant(all, { ...options, key: privateJwk, clock, ttlMs: 3_601_000 })
    expect(await approvals.checkGrant!(long, request())).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_INVALID' },
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
      { ...base, owner_id: 'other' },
      { ...base, agent_id: 'agent-1', user_id: 'nobody' },
      { ...base, task: 'other' },
      { ...base, control_class: 'human-supervised' },
      { ...base, risk: 'read_only' as never },
      { ...base, risk: undefined as never },
      { ...base, type: 'uaicp_action' },
    ]
    for (const scope of scopes) {
      const grant = await signGrant(scope, { ...options, key: privateJwk, clock })
      expect(await approvals.checkGrant!(grant, request()), JSON.stringify(scope)).toMatchObject({
        reason: { code: 'APPROVAL_SCOPE', subject: 'reverse_wire' },
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
