import { actionDigest, hashJson, type Action, type ApprovalRequest } from '@skein/governance'
import { approvals, approve, generateKey } from '@skein/governance/approvals'
import type { PrivateJwk, PublicJwk } from '@skein/governance/approvals'
import type { Bench } from '../runner/bench.ts'
import { measured } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'
import { identity } from './setup.ts'

const checks = 200

interface Jose {
  importJWK(jwk: object, alg: string): Promise<unknown>
  jwtVerify(token: string, key: unknown, options: object): Promise<{ payload: object }>
}

function request(): ApprovalRequest {
  const args = { order: 'A-1' }
  const action: Action = {
    request_id: '00000000-0000-4000-8000-000000000001',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    call_id: 'call',
    task: 'bench',
    tool: 'refund',
    risk: 'write_high_risk',
    args,
    args_hash: hashJson(args),
    identity,
    depth: 0,
    policy_hash: hashJson('policy'),
  }
  const expires_at = new Date(Date.now() + 3_000_000).toISOString()
  return { id: 'r', digest: actionDigest(action), action, expires_at, quorum: 1, excluded: [] }
}

async function token(asked: ApprovalRequest): Promise<{ text: string; publicJwk: PublicJwk }> {
  const { publicJwk, privateJwk }: { publicJwk: PublicJwk; privateJwk: PrivateJwk } =
    await generateKey()
  const signer = { audience: 'bench', issuer: 'people', approver: 'ana', key: privateJwk }
  return { text: await approve(asked, { ...signer, ttlMs: 3_000_000 }), publicJwk }
}

async function timed(check: () => Promise<boolean>): Promise<number> {
  const start = performance.now()
  for (let index = 0; index < checks; index++)
    if (!(await check())) throw new Error('The token was refused.')
  return ((performance.now() - start) * 1000) / checks
}

const bench: Bench = {
  title: 'check one Ed25519 token (goal: 1.0 × jose; ours also checks action, person and scope)',
  baseline: 'jose',
  measure: 'returned',
  unit: 'µs',
  contenders: {
    jose: {
      peers: ['jose'],
      async prepare() {
        const { importJWK, jwtVerify } = await peer<Jose>('jose')
        const { text, publicJwk } = await token(request())
        const key = await importJWK(publicJwk, 'Ed25519')
        const options = {
          issuer: 'people',
          audience: 'bench',
          typ: 'uaicp-approval+jwt',
          algorithms: ['Ed25519'],
        }
        return async () =>
          measured(await timed(async () => 'payload' in (await jwtVerify(text, key, options))))
      },
    },
    '@skein/governance': {
      async prepare() {
        const asked = request()
        const { text, publicJwk } = await token(asked)
        const desk = approvals({
          audience: 'bench',
          issuers: { people: { keys: [publicJwk], may: () => true } },
          // Checked again and again here; a real store answers true once.
          spent: { spend: async () => true },
        })
        return async () => measured(await timed(async () => (await desk.redeem([text], asked)).ok))
      },
    },
  },
}

export default bench
