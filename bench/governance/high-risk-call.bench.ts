import { createPublicKey, sign, verify, generateKeyPairSync } from 'node:crypto'
import type { ApprovalRequest } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'
import { memoryLog } from '@skein/governance/audit'
import type { Bench } from '../runner/bench.ts'
import { measured } from '../runner/bench.ts'
import { identity, setUp } from './setup.ts'

const calls = 100

const bench: Bench = {
  title: 'one high-risk call with its token, no sync (goal: 2 × one Ed25519 check + 50 µs)',
  baseline: 'one Ed25519 check',
  measure: 'returned',
  unit: 'µs',
  contenders: {
    'one Ed25519 check': {
      prepare() {
        const { privateKey, publicKey } = generateKeyPairSync('ed25519')
        const key = createPublicKey(publicKey.export({ type: 'spki', format: 'pem' }))
        const data = Buffer.alloc(600, 'a')
        const signature = sign(null, data, privateKey)
        return () => {
          const start = performance.now()
          for (let index = 0; index < calls; index++) verify(null, data, key, signature)
          return measured(((performance.now() - start) * 1000) / calls)
        }
      },
    },
    '@skein/governance': {
      async prepare() {
        const { publicJwk, privateJwk } = await generateKey()
        const desk = approvals({
          audience: 'bench',
          issuers: { people: { keys: [publicJwk], may: () => true } },
          spent: memorySpent(),
        })
        const { governor, task } = setUp(memoryLog(), 'write_high_risk', desk)
        const sign = (request: ApprovalRequest): Promise<string> =>
          approve(request, {
            audience: 'bench',
            issuer: 'people',
            approver: 'ana',
            key: privateJwk,
            ttlMs: 600_000,
          })
        return async () => {
          const opening = await governor.open(task, { identity, input: null })
          if (opening.type !== 'opened') throw new Error('not opened')
          const { request_id } = opening
          let time = 0
          for (let index = 0; index < calls; index++) {
            const call = { id: `call-${index}`, tool: 'look_up', args: { order: 'A-1' } }
            const asked = await governor.admit(request_id, call)
            if (asked.type !== 'review') throw new Error(`not reviewed: ${asked.type}`)
            const tokens = [await sign(asked.request)]
            const start = performance.now()
            const admitted = await governor.admit(request_id, call, { type: 'approve', tokens })
            if (admitted.type !== 'allow')
              throw new Error(`not allowed: ${JSON.stringify(admitted)}`)
            await governor.settle(request_id, call.id, {
              type: 'result',
              result: { total: 12 },
            } as never)
            time += performance.now() - start
          }
          return measured((time * 1000) / calls)
        }
      },
    },
  },
}

export default bench
