// Redeems one token when the parent says so, with a file store that other processes share.
import type { ApprovalRequest } from '../src/index.ts'
import type { PublicJwk } from '../src/keys/keys.ts'
import { approvals } from '../src/approvals/approvals.ts'
import { fileSpent } from '../src/approvals/file-spent-node.ts'
import { sqliteSpent } from '../src/approvals/sqlite-spent-node.ts'

interface Message {
  readonly kind: string
  readonly path: string
  readonly audience: string
  readonly jwk: PublicJwk
  readonly tokens: readonly string[]
  readonly request: ApprovalRequest
  readonly now: number
}

process.on('message', async (message) => {
  const { kind, path, audience, jwk, tokens, request, now } = message as Message
  const spent = kind === 'file' ? fileSpent({ dir: path }) : sqliteSpent({ database: path })
  const desk = approvals({
    audience,
    issuers: { bank: { keys: [jwk], may: () => true } },
    spent,
    clock: { now: () => now },
  })
  process.send!(await desk.redeem(tokens, request))
  process.disconnect()
})
process.send!('ready')
