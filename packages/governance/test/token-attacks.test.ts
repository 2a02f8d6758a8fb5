import { type ChildProcess, fork } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { decodeBase64Url, encodeBase64Url, type JsonObject, seededRandom } from '@skein/base'
import { approvals } from '../src/approvals/approvals.ts'
import { type Action, actionDigest, type ApprovalRequest, type Redemption } from '../src/index.ts'
import { generateKey } from '../src/keys/keys.ts'
import { AUDIENCE, desk, ISSUER, request } from './approval-setup.ts'
import { type Bank, identity, openBank } from './bank.ts'
import { memorySpent } from '../src/contract/spent-store.ts'

type Json = Record<string, unknown>
const encode = (value: unknown): string =>
  encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)))
const decode = (part: string): Json =>
  JSON.parse(new TextDecoder().decode(decodeBase64Url(part))) as Json

/** Changes header or claims and keeps the old signature. */
function tamper(
  token: string,
  { header = {}, claims = {} }: { header?: Json; claims?: Json },
): string {
  const [first, second, third] = token.split('.') as [string, string, string]
  return `${encode({ ...decode(first), ...header })}.${encode({ ...decode(second), ...claims })}.${third}`
}

/** Signs whatever claims with the approver's real key: the attacker is an insider. */
async function signed(
  bank: Bank,
  asked: ApprovalRequest,
  claims: Json,
  header: Json = {},
): Promise<string> {
  const token = tamper(await bank.sign(asked), { claims, header })
  const { toSigningKey } = await import('../src/keys/keys.ts')
  const body = token.split('.').slice(0, 2).join('.')
  return `${body}.${encodeBase64Url(await toSigningKey(bank.privateJwk).sign(new TextEncoder().encode(body)))}`
}

const seconds = (bank: Bank, offset: number): number => Math.floor(bank.clock.now() / 1000) + offset

/** An approval of another action than the one asked about. */
async function forAction(
  bank: Bank,
  asked: ApprovalRequest,
  changes: Partial<Action>,
): Promise<string> {
  const action = { ...asked.action, ...changes }
  return bank.sign({ ...asked, action, digest: actionDigest(action) })
}

interface Attack {
  readonly code: string
  token(bank: Bank, asked: ApprovalRequest): Promise<string>
}

const attacks: Record<string, Attack> = {
  'no signature at all': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => `${(await bank.sign(asked)).split('.').slice(0, 2).join('.')}.`,
  },
  'a forged signature': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => `${(await bank.sign(asked)).slice(0, -86)}${'A'.repeat(86)}`,
  },
  'a key of nobody': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => bank.sign(asked, { key: (await generateKey()).privateJwk }),
  },
  'a key of nobody under a known name': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) =>
      bank.sign(asked, { key: { ...(await generateKey()).privateJwk, kid: bank.publicJwk.kid! } }),
  },
  'a key that comes with the token': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => {
      const { privateJwk, publicJwk } = await generateKey()
      return tamper(await bank.sign(asked, { key: privateJwk }), { header: { jwk: publicJwk } })
    },
  },
  'alg none': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) =>
      `${tamper(await bank.sign(asked), { header: { alg: 'none' } })
        .split('.')
        .slice(0, 2)
        .join('.')}.`,
  },
  'HMAC with the public key as secret': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => {
      const body = tamper(await bank.sign(asked), { header: { alg: 'HS256' } })
        .split('.')
        .slice(0, 2)
        .join('.')
      const hmac = createHmac('sha256', Buffer.from(bank.publicJwk.x, 'base64url'))
        .update(body)
        .digest()
      return `${body}.${encodeBase64Url(new Uint8Array(hmac))}`
    },
  },
  'another algorithm in the header': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, {}, { alg: 'ES256' }),
  },
  'a token of another type': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, {}, { typ: 'JWT' }),
  },
  'a token without type': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, {}, { typ: undefined }),
  },
  'a critical extension': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, {}, { crit: ['x'], x: 1 }),
  },
  'an issuer nobody knows': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => bank.sign(asked, { issuer: 'evil' }),
  },
  'an issuer named like a built-in': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => bank.sign(asked, { issuer: '__proto__' }),
  },
  'another audience': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => bank.sign(asked, { audience: 'other' }),
  },
  'two audiences': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, { aud: ['governor.bank', 'other'] }),
  },
  expired: {
    code: 'APPROVAL_EXPIRED',
    token: (bank, asked) =>
      signed(bank, asked, {
        iat: seconds(bank, -120),
        nbf: seconds(bank, -120),
        exp: seconds(bank, -31),
      }),
  },
  'not yet valid': {
    code: 'APPROVAL_NOT_YET_VALID',
    token: (bank, asked) => signed(bank, asked, { nbf: seconds(bank, 31) }),
  },
  'issued in the future': {
    code: 'APPROVAL_NOT_YET_VALID',
    token: (bank, asked) => signed(bank, asked, { iat: seconds(bank, 31), nbf: seconds(bank, 0) }),
  },
  'valid for too long': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, { exp: seconds(bank, 3601) }),
  },
  'valid for too long, issued long ago': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) =>
      signed(bank, asked, { iat: seconds(bank, -7200), nbf: seconds(bank, -7200) }),
  },
  'valid for ever': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, { exp: undefined }),
  },
  'times that are no numbers': {
    code: 'APPROVAL_INVALID',
    token: (bank, asked) => signed(bank, asked, { exp: '9999999999' }),
  },
  'no id': { code: 'APPROVAL_INVALID', token: (bank, asked) => signed(bank, asked, { jti: '' }) },
  'two grants in one token': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => {
      const [details] = decode((await bank.sign(asked)).split('.')[1]!)[
        'authorization_details'
      ] as Json[]
      return signed(bank, asked, { authorization_details: [details, details] })
    },
  },
  'another kind of grant': {
    code: 'APPROVAL_SCOPE',
    token: async (bank, asked) => {
      const [details] = decode((await bank.sign(asked)).split('.')[1]!)[
        'authorization_details'
      ] as Json[]
      return signed(bank, asked, { authorization_details: [{ ...details, type: 'payment' }] })
    },
  },
  'for another request': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) =>
      forAction(bank, asked, { request_id: '0190aaaa-0000-7000-8000-00000000beef' }),
  },
  'for another call': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) => forAction(bank, asked, { call_id: '1.9' }),
  },
  'for another tool': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) => forAction(bank, asked, { tool: 'note' }),
  },
  'for other arguments': {
    code: 'APPROVAL_SCOPE',
    token: async (bank, asked) => {
      const { hashJson } = await import('../src/index.ts')
      const args = { wire: 'W-2' }
      return forAction(bank, asked, { args, args_hash: hashJson(args) })
    },
  },
  'for another rollback': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) =>
      forAction(bank, asked, { rollback: { type: 'manual', target: 'x', payload: {} } }),
  },
  'for another identity': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) =>
      forAction(bank, asked, { identity: { ...identity, owner_id: 'other' } }),
  },
  'under another policy': {
    code: 'APPROVAL_SCOPE',
    token: (bank, asked) => forAction(bank, asked, { policy_hash: `sha256:${'0'.repeat(64)}` }),
  },
  'the agent approves itself': {
    code: 'APPROVAL_SELF',
    token: (bank, asked) => bank.sign(asked, { approver: 'agent-1' }),
  },
  'claims edited after signing': {
    code: 'APPROVAL_INVALID',
    token: async (bank, asked) => tamper(await bank.sign(asked), { claims: { sub: 'boss' } }),
  },
}

describe('an attack with a token has no effect', () => {
  for (const [name, { code, token }] of Object.entries(attacks)) {
    test(`UAICP-24 ${name}`, async () => {
      const bank = await openBank()
      const { effects, log } = await attack(bank, (asked) => token(bank, asked))
      expect(effects).toEqual(['ledger A-1'])
      expect(log).toContain(`"code":"${code}"`)
      expect(log).not.toContain('"uaicp:event":"call_started"')
    })
  }

  test('UAICP-24 revoked', async () => {
    const clock = { now: () => Date.UTC(2026, 0, 1, 12) }
    const { publicJwk, privateJwk } = await generateKey()
    const spent = memorySpent({ clock })
    const issuers = { bank: { keys: [publicJwk], may: () => true } }
    const revoked = ({ approver }: { approver: string }): boolean => approver === 'ana'
    const bank = await openBank({
      approvals: approvals({ audience: 'governor.bank', issuers, spent, clock, revoked }),
    })
    const told = await attack(bank, (asked) => bank.sign(asked, { key: privateJwk }))
    expect(told.effects).toEqual(['ledger A-1'])
    expect(told.log).toContain('APPROVAL_REVOKED')
    const fine = await attack(bank, (asked) =>
      bank.sign(asked, { key: privateJwk, approver: 'ben' }),
    )
    expect(fine.effects).toContain('reverse W-1')
  })

  test('UAICP-24 a person who may not approve this', async () => {
    const clock = { now: () => Date.UTC(2026, 0, 1, 12) }
    const { publicJwk, privateJwk } = await generateKey()
    const issuers = {
      bank: {
        keys: [publicJwk],
        may: (action: Action, who: string) => who === 'boss' && action.tool === 'reverse',
      },
    }
    const bank = await openBank({
      approvals: approvals({
        audience: 'governor.bank',
        issuers,
        spent: memorySpent({ clock }),
        clock,
      }),
    })
    expect((await attack(bank, (asked) => bank.sign(asked, { key: privateJwk }))).effects).toEqual([
      'ledger A-1',
    ])
  })

  test('UAICP-24 the good token has its effect, once', async () => {
    const bank = await openBank()
    expect((await attack(bank, (asked) => bank.sign(asked))).effects).toEqual([
      'ledger A-1',
      'reverse W-1',
    ])
  })
})

/** Runs a task in which the agent reverses a wire and the approver answers with this token. */
async function attack(
  bank: Bank,
  answer: (asked: ApprovalRequest) => Promise<string>,
): Promise<{ effects: readonly string[]; log: string }> {
  const find = (name: string) => bank.tools.find((tool) => tool.name === name)!
  const approve = async (asked: ApprovalRequest) => ({
    type: 'approve' as const,
    tokens: [await answer(asked)],
  })
  await bank.governor.run(bank.task, { identity, input: null, approve }, async (run) => {
    await run.call(find('ledger'), { account: 'A-1' } as never)
    await run.call(find('reverse'), { wire: 'W-1' } as never)
    return 'reversed'
  })
  return {
    effects: bank.effects.filter((effect) => !effect.startsWith('reinstate')),
    log: bank.log.lines.join('\n'),
  }
}

describe('a token is spent once', () => {
  test('UAICP-24 replayed in a later run of the same request id', async () => {
    const bank = await openBank()
    const reused: string[] = []
    const sign = async (asked: ApprovalRequest): Promise<string> => {
      reused.push(reused[0] ?? (await bank.sign(asked)))
      return reused.at(-1)!
    }
    await attack(bank, sign)
    await attack(bank, sign)
    expect(bank.effects.filter((effect) => effect === 'reverse W-1')).toHaveLength(1)
  })

  test('UAICP-24 replayed one after the other and at the same time', async () => {
    const { approvals: desked, sign } = await desk()
    const asked = request()
    const token = await sign(asked)
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => desked.redeem([token], asked)),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
    expect(await desked.redeem([token], asked)).toMatchObject({
      ok: false,
      reason: { code: 'APPROVAL_REPLAYED' },
    })
  })

  for (const kind of ['file', 'sqlite']) {
    test(`UAICP-24 replayed in two processes at the same time, ${kind} store`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'skein-redeem-'))
      const { sign, publicJwk, clock } = await desk()
      const asked = request()
      const message = {
        kind,
        path: join(folder, 'spent'),
        audience: AUDIENCE,
        jwk: publicJwk,
        tokens: [await sign(asked)],
        request: asked,
        now: clock.now(),
      }
      const children = [start(), start()]
      await Promise.all(children.map(next))
      const answers = children.map(next)
      for (const child of children) child.send(message)
      const told = (await Promise.all(answers)) as Redemption[]
      rmSync(folder, { recursive: true })
      expect(told.map(({ ok }) => ok).sort()).toEqual([false, true])
      expect(told.find(({ ok }) => !ok)).toMatchObject({ reason: { code: 'APPROVAL_REPLAYED' } })
    })
  }
})

function start(): ChildProcess {
  return fork(new URL('redeem-process.ts', import.meta.url), [], {
    execArgv: ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning'],
  })
}

function next(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => child.once('message', resolve).once('error', reject))
}

test('fuzzed tokens: none is accepted', async () => {
  const count = process.env['SKEIN_DEEP'] ? 1_000_000 : 4000
  const { approvals: desked, sign } = await desk()
  const random = seededRandom(7515)
  const below = (limit: number): number => Math.floor(random() * limit)
  const asked = request()
  const good = await sign(asked)
  let accepted = 0
  for (let run = 0; run < count; run++) {
    const token = mutate(good, below)
    if (token !== good && (await desked.redeem([token], asked)).ok) accepted++
  }
  if (process.env['SKEIN_DEEP']) console.log(`${count} fuzzed tokens, ${accepted} accepted`)
  expect(accepted).toBe(0)
  expect(await desked.redeem([good], asked)).toMatchObject({ ok: true })
}, 1_800_000)

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n'

/** A change in the text, in the JSON of header or claims, or in the order of the parts. */
function mutate(token: string, below: (limit: number) => number): string {
  const at = below(token.length)
  const parts = token.split('.')
  switch (below(7)) {
    case 0:
      return token.slice(0, at) + alphabet[below(alphabet.length)]! + token.slice(at + 1)
    case 1:
      return token.slice(0, at) + token.slice(at + 1 + below(8))
    case 2:
      return token.slice(0, at) + alphabet[below(alphabet.length)]! + token.slice(at)
    case 3:
      return tamper(token, {
        claims: randomMember(
          ['iss', 'sub', 'aud', 'jti', 'iat', 'nbf', 'exp', 'authorization_details'],
          below,
        ),
      })
    case 4:
      return tamper(token, {
        header: randomMember(['alg', 'kid', 'typ', 'crit', 'jwk', 'b64'], below),
      })
    case 5:
      ;[parts[0], parts[1], parts[2]] = [parts[below(3)]!, parts[below(3)]!, parts[below(3)]!]
      return parts.join('.')
    default: {
      const bytes = decodeBase64Url(parts[2]!)
      bytes[below(64)]! ^= 1 << below(8)
      return `${parts[0]}.${parts[1]}.${encodeBase64Url(bytes)}`
    }
  }
}

const odd = [
  '',
  'none',
  'HS256',
  'Ed25519',
  'EdDSA',
  0,
  -1,
  1e12,
  1e300,
  null,
  true,
  [],
  {},
  ISSUER,
  AUDIENCE,
  'JWT',
  undefined,
]

function randomMember(names: readonly string[], below: (limit: number) => number): JsonObject {
  return { [names[below(names.length)]!]: odd[below(odd.length)] as never }
}
